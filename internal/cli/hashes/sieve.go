package hashes

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

const (
	sieveEntries = 1_000_000 // unless set
	sieveHashes  = 20        // best for sieveFPR, if the number is free

	// sieveFPR is the rate at capacity of a sieve whose size follows from its entries,
	// or the reverse.
	sieveFPR = 1e-6

	// leastBits is the least size of such a sieve: the double and the seeded families
	// add about 1/m to the rate (see [bloom.Size]).
	leastBits = 1 << 25
)

// sieving is a call of "hashes sieve".
type sieving struct {
	entries, bits uint64
	family        string
	asJSON        bool
}

func newHashesSieveCommand() *cobra.Command {
	s := &sieving{}
	cmd := &cobra.Command{
		Use:   "sieve",
		Short: "Print the keys of standard input that did not come before",
		Long: `Print the keys of standard input that did not come before, in their order and at
once. The memory is fixed, however many keys come: a Bloom filter remembers them
in some 29 bits each, 4 MiB at least. In return a few new keys are dropped by
mistake. A key that is printed is certainly new.

--entries is the number of different keys that the sieve is made for. Up to
there it drops at most one new key in a million. --bits sets the size instead;
with both, the rate follows. From the capacity on, the command says on standard
error how many new keys it drops now, and again whenever the rate has grown
tenfold.

--family is a hash family of [filter]; an unknown name lists all. The default,
double, has a new secret key in each run, so that nobody can make keys that are
dropped. With double:murmur3 a run can be repeated. The classic families and
weighted drop more if the keys are alike, such as numbers in a row.

A key is a line, as raw bytes. Nothing is trimmed: only a line feed ends a line.
A line may have up to 1 MiB. --json prints each new key as an object on a line:
"key" is null if it is not UTF-8; "key_hex" always holds its bytes. The command
ends quietly if nobody reads its output any more.`,
		Example: `  spamgate hashes sieve < senders.txt > first-seen.txt
  tail -F sender.log | spamgate hashes sieve --entries 50000000
  spamgate hashes sieve --bits 268435456 --family classic --json < keys.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s is too much: the keys come from standard input", strconv.Quote(args[0]))
			}
			return nil
		},
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	cmd.Flags().Uint64Var(&s.entries, "entries", 0, "the `NUMBER` of different keys to expect\n(default 1000000)")
	cmd.Flags().Uint64Var(&s.bits, "bits", 0, "the `NUMBER` of bits, at most 2^32; the default\nfollows from --entries")
	cmd.Flags().StringVar(&s.family, "family", "double", "the `NAME` of a hash family")
	cmd.Flags().BoolVar(&s.asJSON, "json", false, "print an object for each new key, one on a line")
	return cmd
}

func (s *sieving) run(cmd *cobra.Command) error {
	spec, err := hashfamily.ParseSpec(s.family)
	if err != nil {
		return fmt.Errorf("--family: %w", err)
	}
	family, n, err := s.size(spec)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	w := &sieveWarnings{capacity: n, stderr: cmd.ErrOrStderr()}
	if !spec.AnyKeys() {
		w.atBest = ", if the keys are unlike each other"
	}
	sieve, err := bloom.NewSieve(family, n, func(float64) { w.full = true })
	if err != nil {
		return err
	}
	w.filter = sieve.Filter()
	w.begin()
	err = eachKey(cmd.Context(), nil, flushingReader{cmd.InOrStdin(), out}, func(key []byte) error {
		if !sieve.Push(key) {
			return nil
		}
		for sieve.Len() > 0 {
			fresh, _ := sieve.Pop()
			if err := s.print(out, fresh); err != nil {
				return err
			}
			w.printed++
		}
		w.check()
		return nil
	})
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil // nobody wants more
	}
	return err
}

// size returns the family, and the number of keys that the sieve is for.
func (s *sieving) size(spec hashfamily.Spec) (family hashfamily.Family, keys int, err error) {
	n, p := s.entries, hashfamily.Params{M: s.bits, K: spec.K()}
	if p.K == 0 {
		p.K = min(sieveHashes, spec.MaxK())
	}
	independent := spec.Independent(p.K)
	switch {
	case s.bits == 0:
		n = cmp.Or(n, sieveEntries)
		bits := math.Ceil(bloom.BitsFor(float64(n), sieveFPR, independent))
		if bits > bloom.MaxBits {
			return nil, 0, fmt.Errorf("--entries %d: they need %.3g bits, and a sieve has at most %d (512 MiB): use fewer, or --bits for a higher rate", n, bits, uint64(bloom.MaxBits))
		}
		p.M = max(uint64(bits), leastBits)
	case s.bits > bloom.MaxBits:
		return nil, 0, fmt.Errorf("--bits %d: a sieve has at most %d (512 MiB)", s.bits, uint64(bloom.MaxBits))
	case n == 0:
		n = uint64(bloom.EntriesFor(float64(s.bits), sieveFPR, independent))
	case spec.K() == 0:
		p.K = min(bloom.BestHashes(float64(s.bits), float64(n)), spec.MaxK())
	}
	if n < 1 {
		return nil, 0, fmt.Errorf("--bits %d: too few for a key: use more", s.bits)
	}
	if p.M, err = spec.FitM(p.M); err != nil {
		return nil, 0, err
	}
	if spec.Keyed() {
		p.Key = make([]byte, hashfamily.KeySize)
		_, _ = rand.Read(p.Key) // never fails
	}
	family, err = spec.New(p)
	return family, int(min(n, math.MaxInt)), err
}

// print prints a new key.
func (s *sieving) print(out *bufio.Writer, key []byte) error {
	if s.asJSON {
		line, err := oneLine(newKeyOf(key))
		if err != nil {
			return err
		}
		key = line
	}
	out.Write(key)
	if err := out.WriteByte('\n'); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// sieveWarnings says how many new keys are dropped, from the capacity on.
type sieveWarnings struct {
	filter   *bloom.Filter
	capacity int
	stderr   io.Writer
	atBest   string // follows a rate that does not hold for all keys

	full    bool // the filter's own estimate is above the capacity
	printed int
	next    int     // at which count to look again
	count   float64 // the rate of the last warning
}

// begin warns if the sieve is too small for its entries.
func (w *sieveWarnings) begin() {
	if _, rate := w.filter.Expect(float64(w.capacity)); rate >= 1e-3 {
		fmt.Fprintf(w.stderr, "spamgate: hashes sieve: at %s it will drop about %s (%s)%s; use more --bits\n",
			text.Count(w.capacity, "key", "different keys"), oneIn(rate), term.FPR(rate), w.atBest)
	}
}

// check warns if that is due. It computes the rate each time when a hundredth more keys
// have come.
func (w *sieveWarnings) check() {
	if w.printed < w.capacity && !w.full || w.printed < w.next {
		return
	}
	w.next = w.printed + w.capacity/100 + 1
	rate := w.filter.ExpectedFPR(float64(w.printed))
	if w.count > 0 && rate < max(10*w.count, 1e-9) {
		return
	}
	w.count = max(rate, math.SmallestNonzeroFloat64)
	load := "more than the sieve is made for"
	if w.printed <= w.capacity {
		load = "as many as the sieve is made for"
	}
	fmt.Fprintf(w.stderr, "spamgate: hashes sieve: %s, %s: it now drops about %s (%s)%s, and more with each; use more --entries or --bits\n",
		text.Count(w.printed, "key", "different keys"), load, oneIn(rate), term.FPR(rate), w.atBest)
}

// oneIn returns a rate as "1 in 1,200 new keys".
func oneIn(rate float64) string {
	if math.IsNaN(rate) {
		return "an unknown part of the new keys"
	}
	if rate < 1e-15 {
		return "no new key"
	}
	return "1 in " + text.Number(int64(math.Round(1/rate))) + " new keys"
}
