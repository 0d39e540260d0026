package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"spamgate/internal/hashlab"
)

// CSVHeader names the columns of [CSV], which writes one number a line. Sections and
// metrics are named as in the JSON; docs/hash-families-fields.md has the meaning of
// each column and metric. Columns without a meaning are empty, and so are unknown
// values and limits. The cells of the avalanche matrices are in the JSON only.
var CSVHeader = []string{"section", "corpus", "subject", "kind", "part", "m", "k", "n", "metric", "value", "low", "high"}

// CSV writes the report as comma-separated values (RFC 4180, but lines end with a
// line feed), with [CSVHeader] first.
func CSV(w io.Writer, r *hashlab.Report) error {
	out := csvWriter{csv.NewWriter(w)}
	out.csv.Write(CSVHeader)
	out.manifest(r)
	out.rates(r)
	out.hashes(r)
	out.pairs(r)
	out.csv.Flush()
	if err := out.csv.Error(); err != nil { // keeps the first of all writes
		return fmt.Errorf("writing the report as CSV: %w", err)
	}
	return nil
}

type csvWriter struct{ csv *csv.Writer }

// csvRow is the columns that the lines of a row have in common.
type csvRow struct {
	section, corpus string
	hashlab.Subject
	part string
	m    uint64
	k, n int
}

// metric is a number with its name. An [hashlab.Interval] brings its limits.
type metric struct {
	name  string
	value any
}

// write writes a line for each metric.
func (c csvWriter) write(r csvRow, metrics ...metric) {
	size := func(x uint64) string {
		if x == 0 {
			return ""
		}
		return strconv.FormatUint(x, 10)
	}
	for _, m := range metrics {
		value, low, high := m.value, "", ""
		if i, ok := value.(hashlab.Interval); ok {
			value, low, high = i.Value, exact(i.Low), exact(i.High)
		}
		if x, ok := value.(float64); ok {
			value = exact(x)
		}
		c.csv.Write([]string{r.section, r.corpus, r.Name, r.Kind, r.part, size(r.m), size(uint64(r.k)), size(uint64(r.n)), m.name, fmt.Sprint(value), low, high})
	}
}

// exact returns x with all its digits, or nothing if it is unknown.
func exact(x float64) string {
	if !hashlab.Known(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func (c csvWriter) manifest(r *hashlab.Report) {
	m := r.Manifest
	c.write(csvRow{section: "manifest"},
		metric{"version", m.Version}, metric{"go", m.Go}, metric{"os", m.OS}, metric{"cpu", m.CPU}, metric{"clock_ghz", m.ClockGHz},
		metric{"flags", strings.Join(m.Flags, " ")}, metric{"seed", m.Seed}, metric{"full", m.Full}, metric{"public_key", m.PublicKey},
		metric{"interrupted", r.Interrupted})
	for _, p := range m.Corpora {
		c.write(csvRow{section: "manifest", corpus: p.Name}, metric{"what", p.What}, metric{"keys", p.Keys}, metric{"bytes", p.Bytes},
			metric{"sha256", p.SHA256}, metric{"duplicates", p.Duplicates}, metric{"invalid", p.Invalid})
	}
	for _, f := range r.Summary {
		c.write(csvRow{section: "summary", part: strconv.FormatBool(f.Holds)}, metric{f.Name, f.Text})
	}
}

func (c csvWriter) rates(r *hashlab.Report) {
	for _, f := range r.FPR {
		row := csvRow{section: "fpr", corpus: f.Corpus, Subject: f.Subject, m: f.M, k: f.K, n: f.N}
		if f.FullSize {
			row.part = "full size"
		}
		c.write(row, metric{"load", f.Load}, metric{"filters", f.Filters}, metric{"hits", f.Hits}, metric{"trials", f.Trials}, metric{"rate", f.Rate},
			metric{"formula", f.Formula}, metric{"by_fill", f.ByFill}, metric{"effective_k", f.EffectiveK}, metric{"fill", f.Fill}, metric{"expected_fill", f.ExpectedFill})
	}
	for _, f := range r.Equivalence {
		c.write(csvRow{section: "equivalence", corpus: f.Corpus, Subject: f.Subject, part: f.Verdict, k: f.K}, metric{"hits", f.Hits}, metric{"expected", f.Expected}, metric{"ratio", f.Ratio},
			metric{"p_equivalent", f.PEquivalent}, metric{"worst", f.Worst}, metric{"p_differs", f.PDiffers})
	}
	for _, f := range r.Messages {
		c.write(csvRow{section: "messages", corpus: f.Corpus, Subject: f.Subject, m: f.M, k: f.K, n: f.N},
			metric{"filters", f.Filters}, metric{"hits", f.Hits}, metric{"messages", f.Messages}, metric{"rate", f.Rate},
			metric{"keys_a_message", f.KeysAMail}, metric{"from_per_key", f.FromPerKey})
	}
	for _, f := range r.PassRates {
		c.write(csvRow{section: "pass_rates", corpus: f.Corpus, Subject: familySubject(f.Family), part: f.Hash, m: f.M, k: f.K, n: f.N},
			metric{"filters", f.Filters}, metric{"hits", f.Hits}, metric{"trials", f.Trials}, metric{"rate", f.Rate}, metric{"fill", f.Fill})
	}
}

func familySubject(name string) hashlab.Subject {
	return hashlab.Subject{Name: name, Kind: hashlab.FamilyKind(name)}
}

func (c csvWriter) hashes(r *hashlab.Report) {
	for _, f := range r.Collisions {
		c.write(csvRow{section: "collisions", corpus: f.Corpus, Subject: f.Subject, m: 1 << f.Bits, n: f.Keys},
			metric{"bits", f.Bits}, metric{"distinct", f.Distinct}, metric{"collisions", f.Collisions}, metric{"expected", f.Expected})
	}
	for _, f := range r.Uniformity {
		c.write(csvRow{section: "uniformity", corpus: f.Corpus, Subject: f.Subject, part: f.Part, m: uint64(f.Buckets), n: f.Keys},
			metric{"chi_square", f.ChiSquare}, metric{"df", f.DF}, metric{"p", f.P}, metric{"p_holm", f.PHolm}, metric{"p_even", f.PEven},
			metric{"effect", f.Effect}, metric{"excess_effect", f.ExcessEffect})
	}
	for _, f := range r.Avalanche {
		c.write(csvRow{section: "avalanche", corpus: f.Corpus, Subject: f.Subject, n: f.Keys},
			metric{"key_bytes", f.KeyBytes}, metric{"mean_bias", f.MeanBias}, metric{"noise", f.Noise}, metric{"never", f.Never},
			metric{"worst_bias", f.WorstBias}, metric{"worst_in", f.WorstIn}, metric{"worst_out", f.WorstOut}, metric{"worst_p", f.WorstP},
			metric{"bic_mean", f.BICMean}, metric{"bic_worst", f.BICWorst}, metric{"bic_in", f.BICIn}, metric{"bic_out_1", f.BICOut1}, metric{"bic_out_2", f.BICOut2},
			metric{"bic_p", f.BICP}, metric{"bic_tested", f.BICTested})
	}
}

func (c csvWriter) pairs(r *hashlab.Report) {
	for _, a := range r.Agreement {
		row := csvRow{section: "agreement", corpus: a.Corpus, Subject: familySubject(a.Family), m: a.M, n: a.N}
		c.write(row, metric{"fill", a.Fill}, metric{"keys", a.Keys})
		for i, j := range a.Pairs() {
			row.part = a.Names[i] + " " + a.Names[j]
			c.write(row, metric{"same", a.Same[i][j]}, metric{"kappa", a.Kappa[i][j]})
		}
	}
	for _, f := range r.Speed {
		c.write(csvRow{section: "speed", Subject: f.Subject, part: f.What, k: f.K},
			metric{"key_bytes", f.KeyBytes}, metric{"runs", f.Runs}, metric{"ns", hashlab.Interval{Value: f.NsMedian, Low: f.NsLeast, High: f.NsMost}},
			metric{"bytes_per_cycle", f.BytesPerCycle})
	}
}
