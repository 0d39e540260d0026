package lists

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/words"
)

func newListsStatsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Measure the filter's memory and false positive rate",
		Long: `Show the memory of the filter and its false positive rate: as expected, and
measured twice: with made-up names, and with names that resemble the lists' own.
These are entries with one digit, a number, one letter or the order of two
characters changed; the change with the highest rate counts. Both measured rates
have an interval of 95% confidence. A false positive refuses no mail; it costs a
lookup in the list's index.

The classic hashes and "weighted" are worse with names that resemble the
entries. For them the expected rate is never below the upper limit that at least
a million probes leave.

The filter has a key for each entry, and in a list by recipient one for each
recipient besides. The estimated number of keys follows from the bits that are
set. If entries resemble each other, classic hashes set fewer bits than so many
keys should.

--json prints an object whose "filter" has, among others,
  keys, estimated_keys           keys in the filter, and what its bits say
  expected_fpr, computed_fpr     null if they cannot be predicted
  probes, false                  made-up names, and how many passed
  similar_probes, similar_false  the same for the worst change of entries
  similar_change, similar        that change, and the counts of all changes

--all-kinds builds and measures a filter of each kind from these lists, as an
aid to choose [filter] kind. Kinds other than the configured one have their
default hash family. BUILD is the time to build the filter from lists that are
in memory.

The lists are read from disk; a running gate is asked for its lookups so far.

Exit codes: 0 success; 2 an error.`,
		Example: `  spamgate lists stats
  spamgate lists stats --all-kinds --probes 10M`,
		Args: cobra.NoArgs,
	}
	var f listsFlags
	f.addJSON(cmd)
	s := &statsRun{}
	cmd.Flags().BoolVar(&s.allKinds, "all-kinds", false, "build and measure a filter of each kind")
	probes := &cli.NumberFlag[uint64]{Value: 1_000_000, Text: "1M", Name: "N", Parse: func(s string) (uint64, error) { return words.ParseCount(s, maxProbes) }}
	cmd.Flags().Var(probes, "probes", "the number of made-up names to look up")
	f.runs(cmd, func(run *session, _ []string) error {
		s.config, s.probes, s.stderr = run.config, int(probes.Value), run.stderr
		report, err := s.run(run)
		if err != nil {
			return err
		}
		return run.print(report, report.print)
	})
	return cmd
}

// maxProbes probes take some minutes.
const maxProbes = 1_000_000_000

// statsRun is one run of stats.
type statsRun struct {
	config   *config.Config
	allKinds bool
	probes   int
	stderr   io.Writer
}

// statsReport is the output of stats.
type statsReport struct {
	Filter  kindStats   `json:"filter"`          // the configured one
	Kinds   []kindStats `json:"kinds,omitempty"` // all
	Lists   []listStats `json:"lists"`
	Gate    *gateStats  `json:"gate,omitempty"` // what a running one has met
	Warning string      `json:"warning,omitempty"`
}

// kindStats describes a filter that was built and measured.
type kindStats struct {
	Kind         string  `json:"kind"`
	Family       string  `json:"family"`
	Configured   bool    `json:"configured,omitempty"`
	Bytes        uint64  `json:"bytes"`
	Bits         uint64  `json:"bits"`
	Hashes       int     `json:"hashes"`
	Parts        int     `json:"parts"` // bitmaps, or fuse filters
	Capacity     float64 `json:"capacity"`
	BuildSeconds float64 `json:"build_seconds"`
	FillRatio    float64 `json:"fill_ratio"`

	Keys          uint64  `json:"keys"`
	EstimatedKeys float64 `json:"estimated_keys"` // from the bits that are set; of a full bitmap 0

	ExpectedFPR admin.Rate `json:"expected_fpr"`
	ComputedFPR admin.Rate `json:"computed_fpr"`

	Probes int `json:"probes"`
	False  int `json:"false"` // probes that passed

	// The same for changed entries: of the worst change, and of all.
	SimilarProbes int             `json:"similar_probes"`
	SimilarFalse  int             `json:"similar_false"`
	SimilarChange string          `json:"similar_change,omitempty"`
	Similar       []similarCounts `json:"similar"`

	Error string `json:"error,omitempty"`
}

// similarCounts are the probes with entries that were changed in one way.
type similarCounts struct {
	Change string `json:"change"`
	Probes int    `json:"probes"`
	False  int    `json:"false"`
}

// listStats is a list's share of the filter.
type listStats struct {
	Name      string  `json:"name"`
	Entries   int     `json:"entries"`
	Index     int64   `json:"index_bytes"`
	FillRatio float64 `json:"fill_ratio"` // if the filter held it alone

	FPR admin.Rate `json:"fpr"` // the same, computed
}

// gateStats counts the lookups of a running gate.
type gateStats struct {
	Lookups     uint64  `json:"lookups"`
	Maybes      uint64  `json:"maybes"`
	FalseMaybes *uint64 `json:"false_maybes,omitempty"`
}

// run reads the lists, builds filters of them and measures those.
func (s *statsRun) run(ctx context.Context) (*statsReport, error) {
	b, err := setup.BlocklistConfig(s.config, nil)
	if err != nil {
		return nil, err
	}
	b.ReadOnly = true
	bar := local.ReadProgress{W: s.stderr}
	b.Follow = bar.Follow
	store, err := store.Open(ctx, b)
	bar.Finish()
	if err != nil {
		return nil, setup.ExplainMissing(s.config, err)
	}
	report := &statsReport{Gate: s.askGate(ctx)}
	err = s.measureAll(ctx, store, b, report)
	return report, errors.Join(err, store.Close())
}

// measureAll measures the configured filter and, with --all-kinds, one of each kind. They
// are built from the lists as the store has read them.
func (s *statsRun) measureAll(ctx context.Context, store *store.Store, b store.Config, report *statsReport) error {
	set := store.Set()
	stats := set.Stats()
	for _, l := range stats.Lists {
		report.Lists = append(report.Lists, listStats{l.Name, l.Entries, l.Bytes, l.FillRatio, admin.Rate(l.FPR)})
	}
	s.sayTrouble(stats)
	var kinds []blocklist.Kind
	if s.allKinds {
		kinds = otherKinds(stats.Kind)
	}
	bar := term.NewProgress(s.stderr)
	defer bar.Finish()
	total := float64(len(kinds) + 1)
	bar.Show(0, string(stats.Kind))
	var err error
	if report.Filter, report.Warning, err = s.measure(ctx, set); err != nil {
		return err
	}
	report.Filter.Configured = true
	for i, kind := range kinds {
		bar.Show(float64(i+1)/total, string(kind))
		b.Filter.Kind = kind
		if kind != stats.Kind {
			b.Filter.Family = "" // the kind's own
		} else {
			b.Filter.Family = s.config.Filter.Family
		}
		made, err := s.make(ctx, store, b)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // too many entries for it, say
			made = kindStats{Kind: string(kind), Error: err.Error()}
		}
		made.Configured = kind == stats.Kind
		report.Kinds = append(report.Kinds, made)
	}
	return nil
}

// otherKinds returns all kinds of filters but auto, with the present kind last: it is then
// built anew like the others, in place of one of them.
func otherKinds(present blocklist.Kind) []blocklist.Kind {
	var kinds []blocklist.Kind
	for _, k := range blocklist.Kinds() {
		if k != blocklist.KindAuto && k != present {
			kinds = append(kinds, k)
		}
	}
	return append(kinds, present)
}

// sayTrouble reports lists that are not measured as they are on disk.
func (s *statsRun) sayTrouble(stats blocklist.SetStats) {
	for _, l := range stats.Lists {
		switch {
		case l.LastGood:
			fmt.Fprintf(s.stderr, "spamgate: list %s: its last good version is measured: %v\n", l.Name, l.Err)
		case l.Err != nil:
			fmt.Fprintf(s.stderr, "spamgate: list %s is not measured: %v\n", l.Name, l.Err)
		}
	}
}

// make builds a filter of a kind and measures it.
func (s *statsRun) make(ctx context.Context, store *store.Store, b store.Config) (kindStats, error) {
	began := time.Now()
	if err := store.Reload(ctx, b); err != nil {
		return kindStats{}, err
	}
	took := time.Since(began)
	made, _, err := s.measure(ctx, store.Set())
	made.BuildSeconds = took.Seconds()
	return made, err
}

// measure probes a Set's filter with names that no list has: made-up ones, and changed
// entries.
func (s *statsRun) measure(ctx context.Context, set *blocklist.Set) (k kindStats, warning string, err error) {
	const seed = 20260601 // any; always the same, so that two runs can be compared
	wrong, err := set.MeasureFPR(ctx, s.probes, seed)
	if err != nil {
		return k, "", err
	}
	similar, err := set.MeasureSimilarFPR(ctx, s.probes, seed)
	if err != nil {
		return k, "", err
	}
	stats := set.StatsWith(similar)
	if s.probes < blocklist.DefaultSimilarProbes { // few probes would exclude little
		if err := set.Probe(ctx, 0); err != nil {
			return k, "", err
		}
		stats = set.Stats()
	}
	worst := blocklist.Worst(similar)
	k = kindStats{
		Kind:          string(stats.Kind),
		Family:        stats.Family,
		Bytes:         stats.FilterBytes,
		Bits:          stats.Bits,
		Hashes:        stats.Hashes,
		Parts:         stats.Shards,
		Capacity:      stats.Capacity,
		BuildSeconds:  stats.Took.Seconds(),
		FillRatio:     stats.FillRatio,
		Keys:          stats.Keys,
		EstimatedKeys: stats.EstimatedEntries,
		ExpectedFPR:   admin.Rate(stats.FPR),
		ComputedFPR:   admin.Rate(stats.ComputedFPR),
		Probes:        s.probes,
		False:         wrong,
		SimilarProbes: worst.Probes,
		SimilarFalse:  worst.False,
		SimilarChange: worst.Change,
	}
	if math.IsInf(k.EstimatedKeys, 1) {
		k.EstimatedKeys = 0 // JSON has no infinite number
	}
	for _, r := range similar {
		k.Similar = append(k.Similar, similarCounts(r))
	}
	return k, stats.Warning, nil
}

// askGate returns the counts of the running gate, or nil if none answers.
func (s *statsRun) askGate(ctx context.Context) *gateStats {
	gate := local.DialGate(s.config)
	defer gate.Close()
	if gate.Client == nil {
		return nil
	}
	status, err := gate.Client.Status(ctx)
	if err != nil {
		fmt.Fprintf(s.stderr, "spamgate: what the running gate has met is not known: %v\n", err)
		return nil
	}
	return newGateStats(status)
}

func newGateStats(s admin.Status) *gateStats {
	if s.Lookups == nil || s.Maybes == nil {
		return nil
	}
	return &gateStats{*s.Lookups, *s.Maybes, s.FalseMaybes}
}
