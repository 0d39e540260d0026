package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/summary"
)

var inf = math.Inf(1)

var update = flag.Bool("update", false, "write testdata anew")

// golden compares with a file of testdata, or with -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; write it anew with -update, and look at the difference. Got:\n%s", path, got)
	}
}

func textOf(t testing.TB, r *hashlab.Report, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := Text(&out, r, width); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTextGolden(t *testing.T) {
	golden(t, "report100.golden", []byte(textOf(t, fixture(), TextWidth)))
	golden(t, "report80.golden", []byte(textOf(t, fixture(), 80)))
}

// TestTextFits wants no line wider than asked for, and no character that a
// terminal obeys, whatever things are called.
func TestTextFits(t *testing.T) {
	for name, r := range map[string]*hashlab.Report{"fixture": fixture(), "long names": longNames(), "nothing": new(hashlab.Report)} {
		for _, width := range []int{100, 90, 80, 72, 60} {
			for line := range strings.Lines(textOf(t, r, width)) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%s: %d columns, want at most %d: %s", name, n, width, line)
				}
				if strings.ContainsFunc(line, unicode.IsControl) {
					t.Errorf("%s: a control character: %q", name, line)
				}
			}
		}
	}
	if a, b := textOf(t, fixture(), 0), textOf(t, fixture(), leastWidth); a != b {
		t.Error("a width of 0 is not the least one")
	}
}

// longNames returns a report with very long names.
func longNames() *hashlab.Report {
	r := fixture()
	long := "weighted:" + strings.TrimSuffix(strings.Repeat("4294967295,", 60), ",")
	corpus := strings.Repeat("x", 300)
	for i := range r.FPR {
		f := &r.FPR[i]
		if f.Name == "weighted" {
			f.Name = long
		}
		if f.Corpus == "real" {
			f.Corpus = corpus // which the manifest does not have
		}
		f.Hits, f.Trials = f.Hits*1e6, f.Trials*1e6
	}
	for i := range r.PassRates {
		p := &r.PassRates[i]
		p.Corpus = corpus
		if p.Family == "weighted" {
			p.Family, p.Rate.Value = long, 0.9
		}
	}
	for i := range r.Speed {
		r.Speed[i].Name = long
	}
	for i := range r.Agreement {
		r.Agreement[i].Family = long
	}
	r.Manifest.Flags = append(r.Manifest.Flags, "--family="+long)
	r.Summary = summary.Of(r)
	return r
}

// TestTextHasBothControls wants both in every table that has controls: those of
// pass rates and agreement are of single families.
func TestTextHasBothControls(t *testing.T) {
	for block := range strings.SplitSeq(textOf(t, fixture(), TextWidth), "\n\n") {
		if strings.Contains(block, "(control)") && (!strings.Contains(block, "ideal (control)") || !strings.Contains(block, "xxh3 (control)")) {
			t.Errorf("a control is missing:\n%s", block)
		}
	}
}

// TestFullest wants of each corpus and k the filters with the most keys a bit, of
// equal ones the larger, and all of full size.
func TestFullest(t *testing.T) {
	rows := []hashlab.FPRRow{
		{Corpus: "a", K: 7, M: 1 << 16, N: 6489}, {Corpus: "a", K: 7, M: 1 << 16, N: 8111}, {Corpus: "a", K: 7, M: 1 << 20, N: 103_831},
		{Corpus: "b", K: 7, M: 1 << 16, N: 8111}, {Corpus: "b", K: 7, M: 1 << 20, N: 129_788}, {Corpus: "b", K: 9, M: 1 << 16, N: 100},
		{Corpus: "c", K: 11, M: 1 << 28, N: 10, FullSize: true}, {Corpus: "c", K: 11, M: 1 << 28, N: 20, FullSize: true},
	}
	var got []hashlab.FPRRow
	for _, g := range fullest(rows) {
		got = append(got, g...)
	}
	if want := []hashlab.FPRRow{rows[1], rows[4], rows[5], rows[6], rows[7]}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestTextZeroHits wants an upper bound, and no zero.
func TestTextZeroHits(t *testing.T) {
	r := &hashlab.Report{FPR: []hashlab.FPRRow{{Corpus: "c", Subject: subject("f", hashlab.KindFamily), M: 1 << 16, K: 11, N: 1000, Trials: 1e7, Rate: hashlab.Interval{High: 3e-7}, Formula: 1e-9, EffectiveK: limits(inf, 6.5, inf)}}}
	got := textOf(t, r, TextWidth)
	for _, want := range []string{"0/10,000,000", "< 3.00e-7", "< 300", "> 6.50"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

// TestJSON wants the file that the tests of package page read, and the report
// back from it.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, fixture()); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", out.Bytes())
	back := new(hashlab.Report)
	if err := json.Unmarshal(out.Bytes(), back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, fixture()) {
		t.Error("the report is not the one that was written")
	}
}

// TestJSONLines wants a line for each thing measured and for each row of a
// matrix, and what was there before.
func TestJSONLines(t *testing.T) {
	for _, c := range []struct{ compact, want string }{
		{`{}`, `{}`},
		{`{"a":1,"b":[]}`, "{\n \"a\":1,\n \"b\":[]\n}"},
		{`{"a":[{"b":1,"c":[2,3]},{"b":"x,[\\\"{"}]}`, "{\n \"a\":[\n  {\"b\":1,\"c\":[2,3]},\n  {\"b\":\"x,[\\\\\\\"{\"}\n ]\n}"},
		{`{"a":[{"b":[[1,2],[3,4]]}]}`, "{\n \"a\":[\n  {\"b\":[\n    [1,2],\n    [3,4]\n   ]}\n ]\n}"},
	} {
		if got := string(breakLines([]byte(c.compact))); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.compact, got, c.want)
		}
	}
	var out, compact bytes.Buffer
	if err := JSON(&out, fixture()); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&compact, out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if blanks := out.Len() - compact.Len(); blanks > out.Len()/10 {
		t.Errorf("%d of %d bytes are line breaks and what stands before lines", blanks, out.Len())
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes: %.60s", len(line), line)
		}
	}
}

// TestCSV wants as many lines as there are numbers, each with all columns, and
// numbers that parse.
func TestCSV(t *testing.T) {
	r := fixture()
	var out bytes.Buffer
	if err := CSV(&out, r); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll() // wants equally many columns
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lines[0], CSVHeader) {
		t.Errorf("header %q", lines[0])
	}
	count := map[string]int{}
	for _, line := range lines[1:] {
		section, value := line[0], line[9]
		count[section]++
		if section == "manifest" || section == "summary" {
			continue
		}
		for i, s := range append(line[5:8:8], line[9:]...) {
			if _, err := strconv.ParseFloat(s, 64); err != nil && (s != "" || i == 3 && line[8] != "effective_k") {
				t.Errorf("%q in %q is no number", s, line)
			}
		}
		if value == "" && line[8] != "effective_k" || line[8] == "" {
			t.Errorf("nothing in %q", line)
		}
	}
	pairs := 0
	for _, a := range r.Agreement {
		pairs += len(a.Names) * (len(a.Names) - 1) / 2
	}
	for section, want := range map[string]int{
		"manifest": 10 + 6*len(r.Manifest.Corpora), "summary": len(r.Summary), "fpr": 10 * len(r.FPR), "equivalence": 6 * len(r.Equivalence), "messages": 6 * len(r.Messages), "pass_rates": 5 * len(r.PassRates),
		"collisions": 4 * len(r.Collisions), "uniformity": 7 * len(r.Uniformity), "avalanche": 15 * len(r.Avalanche), "agreement": 2*len(r.Agreement) + 2*pairs, "speed": 4 * len(r.Speed),
	} {
		if count[section] != want {
			t.Errorf("%s has %d lines, want %d", section, count[section], want)
		}
	}
	row := []string{"fpr", "real", "classic", "family", "", "131072", "11", "2000", "hits", strconv.FormatUint(r.FPR[0].Hits, 10), "", ""}
	if !slices.ContainsFunc(lines, func(l []string) bool { return slices.Equal(l, row) }) {
		t.Errorf("no line %q", row)
	}
}

// TestWriteErrors wants the writer's error.
func TestWriteErrors(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(os.ErrClosed)
	for name, write := range map[string]func() error{
		"text": func() error { return Text(w, fixture(), TextWidth) },
		"JSON": func() error { return JSON(w, fixture()) },
		"CSV":  func() error { return CSV(w, fixture()) },
	} {
		if err := write(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestZeroHitsCSV wants nothing where a number is unknown.
func TestZeroHitsCSV(t *testing.T) {
	r := zeroHits()
	var out bytes.Buffer
	if err := CSV(&out, r); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fpr", "c", "f", "family", "", "1024", "3", "10", "effective_k", "", exact(r.FPR[0].EffectiveK.Low), ""}
	if !slices.ContainsFunc(lines, func(l []string) bool { return slices.Equal(l, want) }) {
		t.Errorf("no line %q in %q", want, lines)
	}
}
