// Package plan is the command that calculates the size, hashes and false positive rate
// of a filter.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/cli"
	"spamgate/internal/words"
)

// planFlags is the command line of "spamgate plan".
type planFlags struct {
	entries cli.NumberFlag[uint64]
	fpr     cli.NumberFlag[float64]
	bits    cli.NumberFlag[uint64]
	hashes  cli.NumberFlag[uint64]
	memory  cli.NumberFlag[uint64] // in bits
	family  string
	json    bool
	svg     string
	draw    func(io.Writer, *Report) error
}

// NewCommand returns the command that calculates n, p, m and k. If draw is not nil, the command has
// the flag --svg for the picture that draw writes.
func NewCommand(draw func(io.Writer, *Report) error) *cobra.Command {
	f := planFlags{draw: draw}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Calculate size, hashes and error rate of a Bloom filter",
		Long: `Calculate the parameters of a Bloom filter: n entries, the false positive rate
p, m bits (or memory, which is m/8 bytes), and k hashes. Give some of them, and
the command derives the rest:

  n and p       the least memory, and k
  m and p       how many entries fit, and k
  n and m       the best k, and p
  m and k       the n for which k is the best choice: half of the bits get set
  n and k       the m for which k is the best choice
  and k, too    the same with this k; n, m and k: p alone is derived
  n, m and p    the fewest hashes that reach p
  nothing       the classic filter, which is --bits 2^28 --hashes 11

The bits are rounded up and the entries down, so that the planned filter, with a
whole number k, has the given rate or a lower one: exactly for few entries (k·n
up to 128), by an upper bound for more. A table below the answer shows the
textbook's rates for similar m/n (bits per entry) and k.

--family plans for a hash family of [filter], such as seeded, whose size is that
of a table of bits per entry, k and a seed ("seeded:42"), weighted, whose m is a
power of two, or classic:RS,JS,AP. An unknown name lists all.

Numbers: counts are 10000000, 10,000,000, 10_000_000, 1e7, 10M (K, M, G, T are
powers of ten), 16Mi (Ki, Mi, Gi, Ti are powers of two) or 2^24. Rates are
0.0001, 1e-4, 0.01% or 1/10000. Memory has a unit: KiB, MiB, GiB, TiB are powers
of two, KB, MB, GB, TB powers of ten, B is a byte.

--json prints an object of
  entries, fpr, bits, hashes   the plan; a rate too small for a number is 0, and
                               one that cannot be predicted null
  fpr_exact                    whether fpr is exact, and not an upper bound
  family                       what --family said, or null
  fpr_asked                    what --fpr said, or null
  memory_bytes, memory_mib     the same memory twice
  bits_per_entry               m/n
  fill                         the part of the bits that n entries set
  fpr_bound                    a rate that is not exceeded, for small filters
  ideal_hashes                 the fractional k that suits m/n best
  ideal_bits                   the m that would do with an ideal k
  least_bits                   what no filter of any kind can do without
  classic                      null, or for the classic filter's m and k:
                               independent_hashes at best and their rate
                               expected_fpr; resembling names have more
  table                        hashes, the columns; rows of bits_per_entry, fpr
                               (one for each of hashes), best_hashes, best_fpr`,
		Example: `  spamgate plan --entries 10M --fpr 0.01%
  spamgate plan --memory 32MiB --hashes 11
  spamgate plan --entries 1e9 --memory 18MB
  spamgate plan --entries 1M --fpr 0.1% --family seeded:42
  spamgate plan --entries 1e6 --bits 2^24 --json | jq .fpr`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	count := func(limit uint64) func(string) (uint64, error) {
		return func(s string) (uint64, error) { return words.ParseCount(s, limit) }
	}
	hashes := func(s string) (uint64, error) {
		k, err := words.ParseCount(s, bloom.MaxPlanHashes)
		if err != nil { // its examples are in the millions
			return 0, fmt.Errorf("use a whole number from 1 to %d", bloom.MaxPlanHashes)
		}
		return k, nil
	}
	f.entries = cli.NumberFlag[uint64]{Name: "n", Parse: count(bloom.MaxPlan)}
	f.fpr = cli.NumberFlag[float64]{Name: "p", Parse: words.ParseRate}
	f.bits = cli.NumberFlag[uint64]{Name: "m", Parse: count(bloom.MaxPlan)}
	f.hashes = cli.NumberFlag[uint64]{Name: "k", Parse: hashes}
	f.memory = cli.NumberFlag[uint64]{Name: "SIZE", Parse: words.ParseMemory}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var(&f.entries, "entries", "how many entries the filter is to hold")
	cmd.Flags().Var(&f.fpr, "fpr", "the part of lookups of absent keys that may say \"maybe\"")
	cmd.Flags().Var(&f.bits, "bits", "the number of bits")
	cmd.Flags().Var(&f.hashes, "hashes", fmt.Sprintf("the number of hash functions, 1 to %d", bloom.MaxPlanHashes))
	cmd.Flags().Var(&f.memory, "memory", "the number of bits as a size, such as 32MiB")
	cmd.Flags().StringVar(&f.family, "family", "", "plan for a hash family, by `NAME`")
	cmd.Flags().BoolVar(&f.json, "json", false, "print a JSON object")
	if draw != nil {
		cmd.Flags().StringVar(&f.svg, "svg", "", "draw the rate against n into `FILE` (- is standard output)")
	}
	cli.NameErrors(cmd)
	return cmd
}

// run plans, draws and prints.
func (f *planFlags) run(cmd *cobra.Command) error {
	report, err := f.report()
	if err != nil {
		return err
	}
	switch {
	case f.svg == "-" && f.json:
		return errors.New("--svg - and --json both go to standard output: name a file for the picture")
	case f.svg == "-":
		return f.draw(cmd.OutOrStdout(), report)
	case cmd.Flags().Changed("svg"):
		target, perm, err := cli.CheckTarget("--svg", f.svg)
		if err != nil {
			return err
		}
		_, err = cli.ReplaceFile(cmd.Context(), target, perm, func(w io.Writer) (int64, error) { return 0, f.draw(w, report) })
		if err != nil {
			return err
		}
	}
	if f.json {
		return report.printJSON(cmd.OutOrStdout())
	}
	return report.printText(cmd.OutOrStdout())
}

// report plans what the flags ask for.
func (f *planFlags) report() (*Report, error) {
	w := bloom.PlanRequest{Entries: f.entries.Value, FPR: f.fpr.Value, Bits: f.bits.Value, Hashes: int(f.hashes.Value)}
	if f.memory.Text != "" {
		if f.bits.Text != "" && f.bits.Value != f.memory.Value {
			return nil, fmt.Errorf("--bits %s is %d bits, --memory %s is %d bits: leave one of them out",
				f.bits.Text, f.bits.Value, f.memory.Text, f.memory.Value)
		}
		w.Bits = f.memory.Value
	}
	asked := w
	if w == (bloom.PlanRequest{}) && f.family == "" {
		w = bloom.PlanRequest{Bits: bloom.ClassicBits, Hashes: len(hashfamily.Hashes())}
	}
	var spec *hashfamily.Spec
	plan, err := bloom.Plan{}, error(nil)
	if f.family != "" {
		s, parseErr := hashfamily.ParseSpec(f.family)
		if parseErr != nil {
			return nil, parseErr
		}
		spec = &s
		plan, err = familyPlan(s, w)
	} else {
		plan, err = bloom.NewPlan(w)
	}
	if planErr := (*bloom.PlanError)(nil); errors.As(err, &planErr) {
		return nil, errors.New(planErr.Text(f.name))
	}
	if err != nil {
		return nil, err
	}
	return newReport(plan, asked, spec)
}

// name returns the flag of a quantity.
func (f *planFlags) name(q bloom.Quantity) string {
	switch q {
	case bloom.N:
		return "--entries"
	case bloom.P:
		return "--fpr"
	case bloom.K:
		return "--hashes"
	}
	switch {
	case f.bits.Text != "":
		return "--bits"
	case f.memory.Text != "":
		return "--memory"
	}
	return "--bits (or --memory)"
}

// Report is what "plan" says. Its JSON form is described in the help.
type Report struct {
	Entries      uint64       `json:"entries"`
	FPR          *float64     `json:"fpr"` // nil: it cannot be predicted
	FPRExact     bool         `json:"fpr_exact"`
	Family       *string      `json:"family"`
	Bits         uint64       `json:"bits"`
	Hashes       int          `json:"hashes"`
	FPRAsked     *float64     `json:"fpr_asked"`
	MemoryBytes  uint64       `json:"memory_bytes"`
	MemoryMiB    float64      `json:"memory_mib"`
	BitsPerEntry float64      `json:"bits_per_entry"`
	Fill         float64      `json:"fill"`
	FPRBound     float64      `json:"fpr_bound"`
	IdealHashes  float64      `json:"ideal_hashes"`
	IdealBits    float64      `json:"ideal_bits"`
	LeastBits    float64      `json:"least_bits"`
	Classic      *planClassic `json:"classic"`
	Table        rateTable    `json:"table"`

	asked bloom.PlanRequest // zero without flags
	spec  *hashfamily.Spec  // of Family
}

// planClassic describes the classic filter: its hashes are not as
// independent as the formulas suppose.
type planClassic struct {
	IndependentHashes int     `json:"independent_hashes"`
	ExpectedFPR       float64 `json:"expected_fpr"`
}

func newReport(p bloom.Plan, asked bloom.PlanRequest, spec *hashfamily.Spec) (*Report, error) {
	acting := p // with the functions that act independently
	if spec != nil {
		acting.Hashes = spec.Independent(p.Hashes)
	}
	r := &Report{
		Entries: p.Entries, FPRExact: bloom.Exact(acting.Hashes, float64(p.Entries)) && (spec == nil || spec.Excess(p.Bits, p.Hashes, acting.Fill()) == 0), Bits: p.Bits, Hashes: p.Hashes,
		MemoryBytes: p.MemoryBytes(), MemoryMiB: float64(p.MemoryBytes()) / (1 << 20),
		BitsPerEntry: p.BitsPerEntry(), Fill: acting.Fill(), FPRBound: acting.FPRBound(),
		IdealHashes: p.OptimalHashes(), LeastBits: acting.LeastBits(), IdealBits: acting.LeastBits() / math.Ln2,
		Table: newRateTable(p), asked: asked, spec: spec,
	}
	if fpr := rate(spec, p); !math.IsNaN(fpr) {
		r.FPR = &fpr
	}
	if spec != nil {
		name := spec.String()
		r.Family = &name
	}
	if asked.FPR > 0 {
		r.FPRAsked = &asked.FPR
		r.IdealBits = bloom.OptimalBits(float64(p.Entries), asked.FPR)
	}
	classic, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		return nil, err
	}
	if spec == nil && p.Bits == classic.M() && p.Hashes == classic.K() {
		k := classic.Independent()
		r.Classic = &planClassic{IndependentHashes: k, ExpectedFPR: bloom.Rate(p.Bits, k, float64(p.Entries))}
	}
	return r, nil
}

func (r *Report) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}
