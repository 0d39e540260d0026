package hashlab

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// CSVHeader names the columns of [WriteCSV]: a long table, a number a line.
//
//   - section: the report's part, named as in the JSON: manifest, summary, fpr,
//     messages, pass_rates, collisions, uniformity, avalanche, agreement, speed.
//   - corpus, subject, kind: what was measured, over what. Empty where it means
//     nothing, as in all columns.
//   - part: which of several: the index function of pass_rates, "low" or "high"
//     bits of uniformity, the two functions of agreement with a space between, the
//     "what" of speed, "full size" of fpr; of a summary's sentence whether it holds.
//   - m, k, n: the filter's bits, hashes and keys; for collisions and uniformity
//     m is the number of values or buckets and n of keys. 2^64 values are empty.
//   - metric, value: what the number is, named as in the JSON. In manifest and
//     summary the value is text.
//   - low, high: the limits of 95% confidence; for ns of speed the range.
//
// A value or limit that is unknown is empty: of effective_k, see [FPRRow].
//
// The cells of the avalanche matrices are in the JSON only.
var CSVHeader = []string{"section", "corpus", "subject", "kind", "part", "m", "k", "n", "metric", "value", "low", "high"}

// WriteCSV writes the report as comma-separated values (RFC 4180, but lines
// ended by a line feed), with [CSVHeader] first.
func WriteCSV(w io.Writer, r *Report) error {
	out := csvWriter{csv: csv.NewWriter(w)}
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

// csvRow is what several lines have in common.
type csvRow struct {
	section, corpus string
	Subject
	part string
	m    uint64
	k, n int
}

// put writes a line.
func (c csvWriter) put(r csvRow, metric, value, low, high string) {
	number := func(x uint64) string {
		if x == 0 {
			return ""
		}
		return strconv.FormatUint(x, 10)
	}
	c.csv.Write([]string{r.section, r.corpus, r.Name, r.Kind, r.part,
		number(r.m), number(uint64(r.k)), number(uint64(r.n)), metric, value, low, high})
}

func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func (c csvWriter) number(r csvRow, metric string, x float64) { c.put(r, metric, exact(x), "", "") }

func (c csvWriter) count(r csvRow, metric string, x uint64) {
	c.put(r, metric, strconv.FormatUint(x, 10), "", "")
}

func (c csvWriter) interval(r csvRow, metric string, i Interval) {
	number := func(x float64) string {
		if !known(x) {
			return ""
		}
		return exact(x)
	}
	c.put(r, metric, number(i.Value), number(i.Low), number(i.High))
}

// measured writes what a rate was measured with, and the rate.
func (c csvWriter) measured(r csvRow, filters int, hits uint64, asked string, trials uint64, rate Interval) {
	c.count(r, "filters", uint64(filters))
	c.count(r, "hits", hits)
	c.count(r, asked, trials)
	c.interval(r, "rate", rate)
}

func (c csvWriter) manifest(r *Report) {
	text := func(corpus, metric, value string) {
		c.put(csvRow{section: "manifest", corpus: corpus}, metric, value, "", "")
	}
	m := r.Manifest
	text("", "version", m.Version)
	text("", "go", m.Go)
	text("", "os", m.OS)
	text("", "cpu", m.CPU)
	text("", "clock_ghz", exact(m.ClockGHz))
	text("", "flags", strings.Join(m.Flags, " "))
	text("", "seed", strconv.FormatUint(m.Seed, 10))
	text("", "full", strconv.FormatBool(m.Full))
	text("", "public_key", m.PublicKey)
	text("", "interrupted", strconv.FormatBool(r.Interrupted))
	for _, p := range m.Corpora {
		text(p.Name, "what", p.What)
		text(p.Name, "keys", strconv.Itoa(p.Keys))
		text(p.Name, "bytes", strconv.FormatInt(p.Bytes, 10))
		text(p.Name, "sha256", p.SHA256)
		text(p.Name, "duplicates", strconv.Itoa(p.Duplicates))
		text(p.Name, "invalid", strconv.Itoa(p.Invalid))
	}
	for _, f := range r.Summary {
		c.put(csvRow{section: "summary", part: strconv.FormatBool(f.Holds)}, f.Name, f.Text, "", "")
	}
}

func (c csvWriter) rates(r *Report) {
	for _, f := range r.FPR {
		row := csvRow{section: "fpr", corpus: f.Corpus, Subject: f.Subject, m: f.M, k: f.K, n: f.N}
		if f.FullSize {
			row.part = "full size"
		}
		c.number(row, "load", f.Load)
		c.measured(row, f.Filters, f.Hits, "trials", f.Trials, f.Rate)
		c.number(row, "formula", f.Formula)
		c.number(row, "by_fill", f.ByFill)
		c.interval(row, "effective_k", f.EffectiveK)
		c.number(row, "fill", f.Fill)
		c.number(row, "expected_fill", f.ExpectedFill)
	}
	for _, f := range r.Messages {
		row := csvRow{section: "messages", corpus: f.Corpus, Subject: f.Subject, m: f.M, k: f.K, n: f.N}
		c.measured(row, f.Filters, f.Hits, "messages", f.Messages, f.Rate)
		c.number(row, "keys_a_message", f.KeysAMail)
		c.number(row, "from_per_key", f.FromPerKey)
	}
	for _, f := range r.PassRates {
		row := csvRow{section: "pass_rates", corpus: f.Corpus, Subject: Subject{f.Family, familyKind(f.Family)}, part: f.Hash, m: f.M, k: f.K, n: f.N}
		c.measured(row, f.Filters, f.Hits, "trials", f.Trials, f.Rate)
		c.number(row, "fill", f.Fill)
	}
}

func (c csvWriter) hashes(r *Report) {
	for _, f := range r.Collisions {
		row := csvRow{section: "collisions", corpus: f.Corpus, Subject: f.Subject, m: 1 << f.Bits, n: f.Keys}
		c.count(row, "bits", uint64(f.Bits))
		c.count(row, "distinct", uint64(f.Distinct))
		c.count(row, "collisions", uint64(f.Collisions))
		c.number(row, "expected", f.Expected)
	}
	for _, f := range r.Uniformity {
		row := csvRow{section: "uniformity", corpus: f.Corpus, Subject: f.Subject, part: f.Part, m: uint64(f.Buckets), n: f.Keys}
		c.number(row, "chi_square", f.ChiSquare)
		c.count(row, "df", uint64(f.DF))
		c.number(row, "p", f.P)
		c.number(row, "p_holm", f.PHolm)
		c.number(row, "p_even", f.PEven)
		c.number(row, "effect", f.Effect)
		c.number(row, "excess_effect", f.ExcessEffect)
	}
	for _, f := range r.Avalanche {
		row := csvRow{section: "avalanche", corpus: f.Corpus, Subject: f.Subject, n: f.Keys}
		c.count(row, "key_bytes", uint64(f.KeyBytes))
		c.number(row, "mean_bias", f.MeanBias)
		c.number(row, "worst_bias", f.WorstBias)
		c.number(row, "noise", f.Noise)
		c.number(row, "never", f.Never)
	}
}

func (c csvWriter) pairs(r *Report) {
	for _, a := range r.Agreement {
		row := csvRow{section: "agreement", corpus: a.Corpus, Subject: Subject{a.Family, familyKind(a.Family)}, m: a.M, n: a.N}
		c.number(row, "fill", a.Fill)
		c.count(row, "keys", uint64(a.Keys))
		for i := range a.Names {
			for j := i + 1; j < len(a.Names); j++ { // the matrices are symmetric
				row.part = a.Names[i] + " " + a.Names[j]
				c.number(row, "same", a.Same[i][j])
				c.number(row, "kappa", a.Kappa[i][j])
			}
		}
	}
	for _, f := range r.Speed {
		row := csvRow{section: "speed", Subject: f.Subject, part: f.What, k: f.K}
		c.count(row, "key_bytes", uint64(f.KeyBytes))
		c.count(row, "runs", uint64(f.Runs))
		c.put(row, "ns", exact(f.NsMedian), exact(f.NsLeast), exact(f.NsMost))
		c.number(row, "bytes_per_cycle", f.BytesPerCycle)
	}
}
