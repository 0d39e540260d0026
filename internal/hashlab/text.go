package hashlab

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"spamgate/internal/text"
)

// TextWidth is the number of columns that [WriteText] needs for all it has to
// say.
const TextWidth = 100

// WriteText writes the report for people at a terminal, no line wider than width
// columns (at least 60; tables do without some of their columns below
// [TextWidth]): the tables, the manifest, and last, where the prompt comes, the
// summary. Where a table would be long it holds what is worth a look, and says
// so; the other renderers have all.
func WriteText(w io.Writer, r *Report, width int) error {
	t := &textReport{width: max(width, leastWidth), report: r}
	opening := "Hash families, measured. The summary is at the end."
	if t.width < TextWidth {
		opening += " A wider terminal shows more columns; --csv, --json and --html have all."
	}
	t.paragraph("", opening)
	t.corpora()
	t.fpr()
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

type textReport struct {
	out    bytes.Buffer
	width  int
	report *Report
}

// title begins a section, with a sentence or two on what its numbers mean.
func (t *textReport) title(title, meaning string) {
	fmt.Fprintf(&t.out, "\n%s\n", strings.ToUpper(title))
	t.paragraph("", meaning)
}

// paragraph writes wrapped text, its first line after mark, the others below it.
func (t *textReport) paragraph(mark, s string) {
	if s == "" {
		return
	}
	for _, line := range wrap(s, t.width-len(mark)) {
		fmt.Fprintln(&t.out, mark+line)
		mark = strings.Repeat(" ", len(mark))
	}
}

// table writes a table, after a line that says what it is of.
func (t *textReport) table(caption string, rows *textTable) {
	fmt.Fprintln(&t.out)
	t.paragraph("", caption)
	rows.write(&t.out, t.width)
}

func (t *textReport) summary() {
	t.title("summary", "")
	if len(t.report.Summary) == 0 {
		t.paragraph("", "There is nothing to sum up.")
	}
	for _, f := range t.report.Summary {
		t.paragraph("* ", f.Text)
	}
}

// corpora numbers the corpora, for the titles of columns.
func (t *textReport) corpora() {
	if len(t.report.Manifest.Corpora) == 0 {
		return
	}
	t.title("corpora", "What the hashes were given, and by which numbers the tables call it.")
	for i, c := range t.report.Manifest.Corpora {
		t.paragraph(fmt.Sprintf("%5s ", fmt.Sprintf("[%d]", i+1)), fmt.Sprintf("%s: %s; %s of %.1f bytes on average",
			text.Printable(c.Name), text.Printable(c.What), text.Count(c.Keys, "key", "keys"), float64(c.Bytes)/float64(max(1, c.Keys))))
	}
}

// fprGroup is rows that compare: the same corpus, size and number of functions,
// hence the same promise of the formula.
type fprGroup struct {
	corpus string
	m      uint64
	k, n   int
	full   bool
}

func groupOf(f FPRRow) fprGroup { return fprGroup{f.Corpus, f.M, f.K, f.N, f.FullSize} }

// promise is the heading of a group: what all its rows have in common.
func (g fprGroup) promise(f FPRRow) string {
	full := ""
	if g.full {
		full = "full size, "
	}
	return fmt.Sprintf("%s: %sk = %d, m = %s, n = %s (%.3g bits a key). The formula says %s, and a fill of %s.",
		text.Printable(g.corpus), full, g.k, FormatBits(g.m), text.Number(g.n), float64(g.m)/float64(g.n), FormatRate(f.Formula), FormatRate(f.ExpectedFill))
}

// rateGroups are the rows that compare, in the report's order, controls last.
func rateGroups(rows []FPRRow) [][]FPRRow {
	var all [][]FPRRow
	at := map[fprGroup]int{}
	for _, f := range rows {
		i, ok := at[groupOf(f)]
		if !ok {
			i = len(all)
			at[groupOf(f)] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], f)
	}
	for _, g := range all {
		slices.SortStableFunc(g, func(a, b FPRRow) int { return cmp.Compare(isControl(a.Subject), isControl(b.Subject)) })
	}
	return all
}

func isControl(s Subject) int {
	if s.Kind == KindControl {
		return 1
	}
	return 0
}

// fullest are the fullest groups of their corpus and k, which are those that the
// summary speaks of, and those of full size.
func fullest(all [][]FPRRow) [][]FPRRow {
	most := map[fprGroup]FPRRow{}
	place := func(f FPRRow) fprGroup { return fprGroup{corpus: f.Corpus, k: f.K, full: f.FullSize} }
	for _, g := range all {
		if before, ok := most[place(g[0])]; !ok || fuller(g[0], before) {
			most[place(g[0])] = g[0]
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(g []FPRRow) bool {
		return !g[0].FullSize && groupOf(g[0]) != groupOf(most[place(g[0])])
	})
}

func (t *textReport) fpr() {
	if len(t.report.FPR) == 0 {
		return
	}
	all := rateGroups(t.report.FPR)
	shown := fullest(all)
	t.title("false positives per key", `Filters made from random parts of a corpus, asked for its other keys. "× formula" is how many times `+
		`the textbook's (1 - e^(-kn/m))^k the rate is. The effective k (eff. k) is the number of ideal functions that would have the measured rate `+
		`at the measured fill. In brackets: 95% intervals, over the spread between the filters.`)
	if len(shown) < len(all) {
		t.paragraph("", "Shown are the fullest filters of each kind; --csv, --json and --html have the others.")
	}
	for _, g := range shown {
		rows := &textTable{columns: []column{{title: "subject"}, {title: "hits/trials"}, {title: "rate"}, {title: "× formula"}, {title: "eff. k"}, {title: "[95%]", spare: true}, {title: "fill", spare: true}}}
		for _, f := range g {
			k, limits, some := strings.Cut(FormatEffectiveK(f), " [")
			if some {
				limits = "[" + limits
			}
			rows.add(subjectText(f.Subject), text.Number(f.Hits)+"/"+text.Number(f.Trials), FormatInterval(f.Rate, f.Hits), FormatRatio(f), k, limits, FormatRate(f.Fill))
		}
		t.table(groupOf(g[0]).promise(g[0]), rows)
	}
}

// subjectText is a subject's name; controls are marked.
func subjectText(s Subject) string {
	if s.Kind == KindControl {
		return s.Name + " (control)"
	}
	return s.Name
}

func (t *textReport) messages() {
	if len(t.report.Messages) == 0 {
		return
	}
	t.title("false positives per message", `The part of messages of which at least one candidate key is a false positive. "× keys" is how many `+
		`times the rate it is that independent keys would give: below 1 a message's keys err together.`)
	rows := &textTable{columns: []column{{title: "subject"}, {title: "corpus"}, {title: "k"}, {title: "m", spare: true}, {title: "n", spare: true}, {title: "keys"}, {title: "hits/messages"}, {title: "rate"}, {title: "× keys"}}}
	for _, f := range t.report.Messages {
		ratio := "-"
		if f.Hits > 0 && f.FromPerKey > 0 {
			ratio = formatFactor(f.Rate.Value / f.FromPerKey)
		}
		rows.add(subjectText(f.Subject), t.number(f.Corpus), fmt.Sprint(f.K), FormatBits(f.M), text.Number(f.N), fmt.Sprintf("%.1f", f.KeysAMail),
			text.Number(f.Hits)+"/"+text.Number(f.Messages), FormatInterval(f.Rate, f.Hits), ratio)
	}
	fmt.Fprintln(&t.out)
	rows.write(&t.out, t.width)
}

func (t *textReport) speed() {
	if len(t.report.Speed) == 0 {
		return
	}
	t.title("speed", "Nanoseconds a key, the median of the runs, by the key's length; in brackets the range, and B/cycle the bytes that a clock cycle hashes. These numbers differ from run to run and from machine to machine.")
	var lengths []int
	var works []SpeedRow // the first row of each subject and work
	for _, f := range t.report.Speed {
		if !slices.Contains(lengths, f.KeyBytes) {
			lengths = append(lengths, f.KeyBytes)
		}
		if !slices.ContainsFunc(works, func(o SpeedRow) bool { return sameWork(o, f) }) {
			works = append(works, f)
		}
	}
	rows := &textTable{columns: []column{{title: "subject"}, {title: "what"}, {title: "k"}}}
	for _, n := range lengths {
		rows.columns = append(rows.columns, column{title: fmt.Sprintf("%d bytes", n)})
		if n == TypicalKeyBytes {
			rows.columns = append(rows.columns, column{title: "[range]", spare: true}, column{title: "B/cycle", spare: true})
		}
	}
	for _, w := range works {
		row := []string{subjectText(w.Subject), w.What, fmt.Sprint(w.K)}
		for _, n := range lengths {
			row = append(row, t.times(w, n)...)
		}
		rows.add(row...)
	}
	fmt.Fprintln(&t.out)
	rows.write(&t.out, t.width)
}

// sameWork reports whether two rows differ in the keys' length at most.
func sameWork(a, b SpeedRow) bool { return a.Subject == b.Subject && a.What == b.What && a.K == b.K }

// times are the cells of a work and a length.
func (t *textReport) times(work SpeedRow, keyBytes int) []string {
	cells := []string{"-", "-", "-"}
	i := slices.IndexFunc(t.report.Speed, func(f SpeedRow) bool { return sameWork(f, work) && f.KeyBytes == keyBytes })
	if i >= 0 {
		f := t.report.Speed[i]
		cells[0], cells[1] = formatDigits(f.NsMedian, 3), fmt.Sprintf("[%s, %s]", formatDigits(f.NsLeast, 3), formatDigits(f.NsMost, 3))
		if f.BytesPerCycle > 0 {
			cells[2] = formatDigits(f.BytesPerCycle, 2)
		}
	}
	if keyBytes != TypicalKeyBytes {
		return cells[:1]
	}
	return cells
}

// manifest writes what the numbers depend on.
func (t *textReport) manifest() {
	t.title("manifest", "The same manifest gives the same numbers, speed excepted.")
	for _, line := range ManifestLines(t.report) {
		t.paragraph(fmt.Sprintf("  %-11s", line[0]), text.Printable(line[1]))
	}
}

// ManifestLines are the manifest as pairs of a name and a text.
func ManifestLines(r *Report) [][2]string {
	m := r.Manifest
	flags := strings.Join(m.Flags, " ")
	if flags == "" {
		flags = "none"
	}
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
		{"flags", flags},
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
			line += fmt.Sprintf(", %s passed over", text.Count(c.Invalid, "invalid line", "invalid lines"))
		}
		lines = append(lines, [2]string{"corpus", line})
	}
	return lines
}
