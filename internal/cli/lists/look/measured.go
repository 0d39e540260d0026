package look

import (
	"fmt"
	"io"
	"math"

	"spamgate/blocklist"
	"spamgate/blocklist/bloom"
	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// fullStatus is the output of status.
type fullStatus struct {
	admin.Status
	Measured *measured `json:"measured,omitempty"` // with --detail
}

// measured describes the filter of the lists on disk, as it was built and probed.
type measured struct {
	Bits     uint64  `json:"bits"`
	Hashes   int     `json:"hashes"`
	Parts    int     `json:"parts"` // bitmaps, or fuse filters
	Capacity float64 `json:"capacity"`

	Keys          uint64  `json:"keys"`
	EstimatedKeys float64 `json:"estimated_keys"` // from the bits that are set; of a full bitmap 0

	ExpectedFPR admin.Rate `json:"expected_fpr"` // null if it cannot be predicted
	ComputedFPR admin.Rate `json:"computed_fpr"`

	Probes int `json:"probes"` // made-up names
	False  int `json:"false"`  // probes that passed

	// The same for changed entries: of the worst change, and of all.
	SimilarProbes int             `json:"similar_probes"`
	SimilarFalse  int             `json:"similar_false"`
	SimilarChange string          `json:"similar_change,omitempty"`
	Similar       []similarCounts `json:"similar"`
}

// similarCounts are the probes with entries that were changed in one way.
type similarCounts struct {
	Change string `json:"change"`
	Probes int    `json:"probes"`
	False  int    `json:"false"`
}

// measure probes the filter of the lists on disk with names that no list has: made-up ones, and
// changed entries.
func measure(s *session.Session) (*measured, error) {
	set, lists, err := s.Read()
	if set == nil {
		return nil, setup.ExplainMissing(s.Config, err)
	}
	for _, l := range lists {
		if l.Err != nil {
			fmt.Fprintf(s.Stderr, "spamgate: list %s is not measured as it is on disk: %v\n", l.Name, l.Err)
		}
	}
	const probes, seed = blocklist.DefaultSimilarProbes, 20260601 // always the same, so that two runs can be compared
	wrong, err := set.MeasureFPR(s, probes, seed)
	if err != nil {
		return nil, err
	}
	similar, err := set.MeasureSimilarFPR(s, probes, seed)
	if err != nil {
		return nil, err
	}
	stats, worst := set.StatsWith(similar), blocklist.Worst(similar)
	m := &measured{
		Bits:          stats.Bits,
		Hashes:        stats.Hashes,
		Parts:         stats.Shards,
		Capacity:      stats.Capacity,
		Keys:          stats.Keys,
		EstimatedKeys: stats.EstimatedEntries,
		ExpectedFPR:   admin.Rate(stats.FPR),
		ComputedFPR:   admin.Rate(stats.ComputedFPR),
		Probes:        probes,
		False:         wrong,
		SimilarProbes: worst.Probes,
		SimilarFalse:  worst.False,
		SimilarChange: worst.Change,
	}
	if math.IsInf(m.EstimatedKeys, 1) {
		m.EstimatedKeys = 0 // JSON has no infinite number
	}
	for _, r := range similar {
		m.Similar = append(m.Similar, similarCounts(r))
	}
	return m, nil
}

func (m *measured) print(w io.Writer) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-13s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(w, "filter of the lists on disk:")
	parts := ""
	if m.Parts > 1 {
		parts = fmt.Sprintf(", %d parts", m.Parts)
	}
	line("bits", "%s%s", text.Number(m.Bits), parts)
	if m.Hashes > 0 {
		line("hashes", "%d", m.Hashes)
	}
	if m.Capacity > 0 {
		line("capacity", "%s keys", text.Number(uint64(m.Capacity)))
	}
	estimated := ""
	if m.EstimatedKeys > 0 {
		estimated = fmt.Sprintf(" (%s estimated from the fill ratio)", text.Number(uint64(math.Round(m.EstimatedKeys))))
	}
	line("keys", "%s%s", text.Number(m.Keys), estimated)
	line("expected FPR", "%s", m.expected())
	line("measured FPR", "%s", rateText(m.False, m.Probes))
	if m.SimilarProbes > 0 {
		line("  resembling", "%s", rateText(m.SimilarFalse, m.SimilarProbes))
		line("", "(names like the lists' own: %s changed)", m.SimilarChange)
	}
	fmt.Fprintln(w)
}

// expected formats the expected rate, and what was computed if that is another.
func (m *measured) expected() string {
	rate := term.FPR(float64(m.ExpectedFPR))
	if float64(m.ExpectedFPR) == float64(m.ComputedFPR) {
		return rate
	}
	if m.SimilarFalse == 0 {
		rate = "up to " + rate
	}
	return fmt.Sprintf("%s, as measured (%s by the formula)", rate, term.FPR(float64(m.ComputedFPR)))
}

// rateText formats a measured rate with its interval.
func rateText(wrong, probes int) string {
	low, high := bloom.Limits(wrong, probes)
	if wrong == 0 {
		return fmt.Sprintf("below %s (0 of %s names)", term.SmallText(high), text.Number(probes))
	}
	return fmt.Sprintf("%.2g (%.2g to %.2g; %s of %s names)", float64(wrong)/float64(probes), low, high, text.Number(wrong), text.Number(probes))
}
