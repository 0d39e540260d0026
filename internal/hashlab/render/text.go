// Package render writes a report of package hashlab as text for a terminal, CSV or
// JSON.
package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/hashlab/summary"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// Widths of the text, in columns: the one that shows all columns of the tables,
// and the least one.
const (
	TextWidth  = 100
	leastWidth = 60
)

// Text writes the report for people at a terminal, no line wider than width
// columns (at least 60; below [TextWidth] tables omit some of their columns): the
// tables, the manifest, the summary, and last, next to the prompt, the same in
// short. A long table shows the most important rows and says so; the other formats
// have all.
func Text(w io.Writer, r *hashlab.Report, width int) error {
	t := &textWriter{width: max(width, leastWidth), report: r}
	opening := "Hash families, measured. The summary is at the end."
	if t.width < TextWidth {
		opening += " A wider terminal shows more columns; --csv, --json and --html have all."
	}
	t.paragraph("", opening)
	t.corpora()
	t.fpr()
	t.equivalence()
	t.messages()
	t.passRates()
	t.collisions()
	t.uniformity()
	t.avalanche()
	t.agreement()
	t.speed()
	t.manifest()
	t.summary()
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

type textWriter struct {
	out    bytes.Buffer
	width  int
	report *hashlab.Report
}

// section begins a section of so many rows, with a sentence or two on what its
// numbers mean. It reports whether there are rows; without them it writes nothing.
func (t *textWriter) section(rows int, title, meaning string) bool {
	if rows > 0 {
		fmt.Fprintf(&t.out, "\n%s\n", strings.ToUpper(title))
		if meaning != "" {
			t.paragraph("", meaning)
		}
	}
	return rows > 0
}

// paragraph writes wrapped text, its first line after label, the others below it.
func (t *textWriter) paragraph(label, s string) {
	indent := strings.Repeat(" ", len(label))
	for _, line := range term.Wrap(s, t.width-len(label)) {
		fmt.Fprintln(&t.out, label+line)
		label = indent
	}
}

// table writes a table, after an empty line and the caption.
func (t *textWriter) table(caption string, rows *term.Table) {
	fmt.Fprintln(&t.out)
	if caption != "" {
		t.paragraph("", caption)
	}
	rows.Write(&t.out, t.width)
}

// newTable returns a table of these columns. A narrow table may omit those whose
// title begins with "?".
func newTable(titles ...string) *term.Table {
	t := &term.Table{Indent: "  "}
	for _, title := range titles {
		title, spare := strings.CutPrefix(title, "?")
		t.Columns = append(t.Columns, term.Column{Title: title, Spare: spare})
	}
	return t
}

func (t *textWriter) summary() {
	t.section(1, "summary", "")
	if len(t.report.Summary) == 0 {
		t.paragraph("", "There is nothing to summarise.")
	}
	for _, f := range t.report.Summary {
		t.paragraph("* ", f.Text)
	}
	short := summary.Short(t.report)
	t.section(len(short), "in short", "")
	for _, sentence := range short {
		t.paragraph("* ", sentence)
	}
}

// corpora numbers the corpora, for the titles of columns.
func (t *textWriter) corpora() {
	corpora := t.report.Manifest.Corpora
	if !t.section(len(corpora), "corpora", "The keys of the measurements, with the numbers that the tables use for them.") {
		return
	}
	for i, c := range corpora {
		t.paragraph(fmt.Sprintf("%5s ", fmt.Sprintf("[%d]", i+1)), fmt.Sprintf("%s: %s; %s of %.1f bytes on average",
			text.Printable(c.Name), text.Printable(c.What), text.Count(c.Keys, "key", "keys"), float64(c.Bytes)/float64(max(1, c.Keys))))
	}
}

// filterSize identifies rows that compare: the same corpus, size and number of
// functions, hence the same prediction of the formula.
type filterSize struct {
	corpus string
	m      uint64
	k, n   int
	full   bool
}

func sizeOf(f hashlab.FPRRow) filterSize { return filterSize{f.Corpus, f.M, f.K, f.N, f.FullSize} }

// fullest returns the rows that the summary uses, in groups that compare with
// controls last: those of the fullest filters of each corpus and k, and those of
// full size.
func fullest(rows []hashlab.FPRRow) [][]hashlab.FPRRow {
	var all [][]hashlab.FPRRow
	for _, sizes := range hashlab.Groups(rows, func(f hashlab.FPRRow) filterSize {
		return filterSize{corpus: f.Corpus, k: f.K, full: f.FullSize}
	}) {
		most := sizeOf(summary.Fullest(sizes))
		for _, g := range hashlab.Groups(sizes, sizeOf) {
			if g[0].FullSize || sizeOf(g[0]) == most {
				control := func(f hashlab.FPRRow) bool { return f.Kind == hashlab.KindControl }
				all = append(all, append(hashlab.Filter(g, func(f hashlab.FPRRow) bool { return !control(f) }), hashlab.Filter(g, control)...))
			}
		}
	}
	return all
}

func (t *textWriter) fpr() {
	if !t.section(len(t.report.FPR), "false positives per key", `Filters with random parts of a corpus, tested with its other keys. "× formula" is how many times `+
		`the textbook's (1 - e^(-kn/m))^k the rate is. The effective k (eff. k) is the number of ideal functions that would have the measured rate `+
		`at the measured fill. In brackets: 95% intervals, which include the spread between the filters.`) {
		return
	}
	groups := fullest(t.report.FPR)
	if len(groups) < len(hashlab.Distinct(t.report.FPR, sizeOf)) {
		t.paragraph("", "Shown are the fullest filters of each kind; --csv, --json and --html have the others.")
	}
	for _, g := range groups {
		rows := newTable("subject", "hits/trials", "rate", "× formula", "eff. k", "?[95%]", "?fill")
		for _, f := range g {
			k, limits := format.EffectiveK(f)
			rows.Add(subjectText(f.Subject), text.Number(f.Hits)+"/"+text.Number(f.Trials), format.Interval(f.Rate, f.Hits), format.Ratio(f), k, limits, format.Rate(f.Fill))
		}
		f, full := g[0], ""
		if f.FullSize {
			full = "full size, "
		}
		t.table(fmt.Sprintf("%s: %sk = %d, m = %s, n = %s (%.3g bits a key). The formula says %s, and a fill of %s.",
			text.Printable(f.Corpus), full, f.K, format.Bits(f.M), text.Number(f.N), float64(f.M)/float64(f.N), format.Rate(f.Formula), format.Rate(f.ExpectedFill)), rows)
	}
}

// equivalence writes for each family and control whether its rates are the
// formula's.
func (t *textWriter) equivalence() {
	all := hashlab.Filter(t.report.Equivalence, func(e hashlab.Equivalence) bool { return e.Kind != hashlab.KindHash && e.K > 1 })
	if !t.section(len(all), "as the formula says", fmt.Sprintf(`Whether a rate is the formula's within %.0f%%: only if the 90%% interval of their ratio lies inside (two one-sided tests, TOST). "Differs" is a difference of more `+
		"than that at some fill, p < %g after Holm; \"open\" is neither. The ratio is over all corpora, of the fullest filters; the last columns count the corpora that are equivalent alone, open, and different.", 100*hashlab.EquivalenceMargin, summary.Significant)) {
		return
	}
	rows := newTable("subject", "k", "ratio [90%]", "verdict", "alone", "open", "differ")
	for _, e := range summary.Together(all) {
		var counts [3]int
		for _, apart := range summary.Apart(all, e) {
			counts[slices.Index([]string{hashlab.Equivalent, hashlab.Open, hashlab.Differs}, apart.Verdict)]++
		}
		rows.Add(subjectText(e.Subject), fmt.Sprint(e.K), format.Equivalence(e), e.Verdict, fmt.Sprint(counts[0]), fmt.Sprint(counts[1]), fmt.Sprint(counts[2]))
	}
	t.table("", rows)
}

// subjectText returns a subject's name; controls are marked.
func subjectText(s hashlab.Subject) string {
	if s.Kind == hashlab.KindControl {
		return s.Name + " (control)"
	}
	return text.Printable(s.Label())
}

func (t *textWriter) messages() {
	if !t.section(len(t.report.Messages), "false positives per message", `The part of messages of which at least one candidate key is a false positive. "× keys" is how many `+
		`times the rate it is that independent keys would give: below 1 a message's keys err together.`) {
		return
	}
	rows := newTable("subject", "corpus", "k", "?m", "?n", "keys", "hits/messages", "rate", "× keys")
	for _, f := range t.report.Messages {
		ratio := "-"
		if f.Hits > 0 && f.FromPerKey > 0 {
			ratio = format.Factor(f.Rate.Value / f.FromPerKey)
		}
		rows.Add(subjectText(f.Subject), t.number(f.Corpus), fmt.Sprint(f.K), format.Bits(f.M), text.Number(f.N), fmt.Sprintf("%.1f", f.KeysAMail),
			text.Number(f.Hits)+"/"+text.Number(f.Messages), format.Interval(f.Rate, f.Hits), ratio)
	}
	t.table("", rows)
}

// work identifies the speeds that differ in the keys' length alone.
type work struct {
	hashlab.Subject
	what string
	k    int
}

func (t *textWriter) speed() {
	if !t.section(len(t.report.Speed), "speed", "Nanoseconds a key, the median of the runs, by the key's length; in brackets the range, and B/cycle the bytes that a clock cycle hashes. These numbers differ from run to run and from machine to machine.") {
		return
	}
	lengths := hashlab.Distinct(t.report.Speed, func(f hashlab.SpeedRow) int { return f.KeyBytes })
	titles := []string{"subject", "what", "k"}
	for _, n := range lengths {
		titles = append(titles, fmt.Sprintf("%d bytes", n))
		if n == summary.TypicalKeyBytes {
			titles = append(titles, "?[range]", "?B/cycle")
		}
	}
	rows := newTable(titles...)
	for _, speeds := range hashlab.Groups(t.report.Speed, func(f hashlab.SpeedRow) work { return work{f.Subject, f.What, f.K} }) {
		row := []string{subjectText(speeds[0].Subject), speeds[0].What, fmt.Sprint(speeds[0].K)}
		for _, n := range lengths {
			row = append(row, speedCells(speeds, n)...)
		}
		rows.Add(row...)
	}
	t.table("", rows)
}

// speedCells returns the cells of a work and a length: the time, and for the
// typical length its range and the bytes a cycle.
func speedCells(speeds []hashlab.SpeedRow, keyBytes int) []string {
	cells := []string{"-", "-", "-"}
	if i := slices.IndexFunc(speeds, func(f hashlab.SpeedRow) bool { return f.KeyBytes == keyBytes }); i >= 0 {
		f := speeds[i]
		cells[0], cells[1] = format.Digits(f.NsMedian, 3), fmt.Sprintf("[%s, %s]", format.Digits(f.NsLeast, 3), format.Digits(f.NsMost, 3))
		if f.BytesPerCycle > 0 {
			cells[2] = format.Digits(f.BytesPerCycle, 2)
		}
	}
	if keyBytes != summary.TypicalKeyBytes {
		return cells[:1]
	}
	return cells
}

// manifest writes what the numbers depend on.
func (t *textWriter) manifest() {
	t.section(1, "manifest", "The same manifest gives the same numbers, speed excepted.")
	for _, line := range ManifestLines(t.report) {
		t.paragraph(fmt.Sprintf("  %-11s", line[0]), text.Printable(line[1]))
	}
}

// ManifestLines returns the manifest as pairs of a name and a text.
func ManifestLines(r *hashlab.Report) [][2]string {
	m := r.Manifest
	size := "default"
	if m.Full {
		size = "full"
	}
	if r.Interrupted {
		size += ", interrupted"
	}
	cpu := m.CPU
	if m.ClockGHz > 0 {
		cpu += fmt.Sprintf(", %.2f GHz measured", m.ClockGHz)
	}
	lines := [][2]string{
		{"spamgate", m.Version},
		{"Go", m.Go + " " + m.OS},
		{"CPU", cpu},
		{"flags", cmp.Or(strings.Join(m.Flags, " "), "none")},
		{"seed", fmt.Sprint(m.Seed)},
		{"size", size},
		{"public key", m.PublicKey},
	}
	for _, c := range m.Corpora {
		line := fmt.Sprintf("%s: %s, SHA-256 %s", c.Name, text.Count(c.Keys, "key", "keys"), c.SHA256)
		if c.Duplicates > 0 {
			line += fmt.Sprintf(", %s dropped", text.Count(c.Duplicates, "repeated key", "repeated keys"))
		}
		if c.Invalid > 0 {
			line += fmt.Sprintf(", %s skipped", text.Count(c.Invalid, "invalid line", "invalid lines"))
		}
		lines = append(lines, [2]string{"corpus", line})
	}
	return lines
}
