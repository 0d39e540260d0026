package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"spamgate/blocklist/bloom"
	"spamgate/internal/cli/clitest"
)

// runPlan runs "spamgate plan".
func runPlan(args ...string) (string, error) { return clitest.Output(NewCommand(nil), args...) }

// TestPlanWaysToTheSame gives one filter by all the pairs that fix it.
func TestPlanWaysToTheSame(t *testing.T) {
	for _, args := range [][]string{
		{"--entries=1M", "--bits=20M", "--hashes=10"},
		{"--entries=1_000_000", "--memory=2.5MB", "--hashes=10"},
		{"--entries=1e6", "--memory=2500KB", "--bits=20,000,000", "--hashes=10"},
		{"--bits=20e6", "--entries=1000k", "--fpr=1/10000"}, // ten are the fewest that reach it
	} {
		out, err := runPlan(append(args, "--json")...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		var r Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if r.Entries != 1_000_000 || r.Bits != 20_000_000 || r.Hashes != 10 || math.Abs(*r.FPR-0.0000889) > 5e-8 || r.MemoryBytes != 2_500_000 ||
			r.BitsPerEntry != 20 || math.Abs(r.Fill-0.393469) > 1e-6 || r.FPRBound < *r.FPR || r.Classic != nil {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// TestPlanJSON holds the names of the fields, which programs read.
func TestPlanJSON(t *testing.T) {
	out, err := runPlan("--json")
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		t.Fatal(err)
	}
	help := NewCommand(nil).Long
	for _, name := range []string{"entries", "fpr", "fpr_exact", "family", "bits", "hashes", "fpr_asked", "memory_bytes", "memory_mib", "bits_per_entry", "fill",
		"fpr_bound", "ideal_hashes", "ideal_bits", "least_bits", "classic", "table"} {
		if _, ok := object[name]; !ok || !strings.Contains(help, name) {
			t.Errorf("%q is not there, or not in the help", name)
		}
		delete(object, name)
	}
	if len(object) > 0 {
		t.Errorf("fields that the test, and so the help, may not know: %v", object)
	}
}

// TestPlanTable wants a table that holds its plan and the best k of each row, and
// fits, wherever the plan lies.
func TestPlanTable(t *testing.T) {
	for _, perEntry := range []float64{0.001, 0.4, 0.996, 1, 2, 2.5, 5, 9.585, 9.997, 9.994, 15.87, 20, 39.9, 40, 41, 2208, 1e6, 9e15} {
		for _, k := range []int{1, 2, 3, 7, 11, 500, 997, 1000} {
			const n = 1000
			entries := uint64(n)
			if perEntry > 1e12 {
				entries = 1
			}
			p := bloom.Plan{Entries: entries, Bits: max(uint64(perEntry*float64(entries)), 1), Hashes: k}
			table := newRateTable(p)
			if len(table.Hashes) != tableColumns || !slices.Contains(table.Hashes, k) || table.Hashes[tableColumns-1] > bloom.MaxPlanHashes {
				t.Errorf("%+v: columns %v", p, table.Hashes)
			}
			ratios := make([]float64, 0, len(table.Rows))
			for _, row := range table.Rows {
				ratios = append(ratios, row.BitsPerEntry)
				if slices.Min(row.FPR) < row.BestFPR {
					t.Errorf("%+v: m/n %v: k = %d is not the best of %v", p, row.BitsPerEntry, row.BestHashes, row.FPR)
				}
			}
			if !slices.IsSorted(ratios) || !slices.Contains(ratios, p.BitsPerEntry()) || len(ratios) < 6 {
				t.Errorf("%+v: rows %v", p, ratios)
			}
			var b bytes.Buffer
			table.print(&b, p.BitsPerEntry(), k)
			for line := range strings.Lines(b.String()) {
				if utf8.RuneCountInString(line) > 81 { // and the line feed
					t.Errorf("%+v: wider than 80 columns: %q", p, line)
				}
			}
			if strings.Count(b.String(), ">") != 1 {
				t.Errorf("%+v: the plan is not marked once:\n%s", p, &b)
			}
		}
	}
}

func TestPlanOutputFails(t *testing.T) {
	for _, args := range [][]string{{}, {"--json"}} {
		cmd := NewCommand(nil)
		cmd.SilenceErrors = true
		cmd.SetOut(brokenWriter{})
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(context.Background()); !errors.Is(err, errWriter) {
			t.Errorf("%v: %v, want the writer's error", args, err)
		}
	}
}

func TestPlanNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{decimals(2285.526, 2), "2,285.53"}, {decimals(0, 2), "0.00"}, {decimals(0.00123, 2), "1.23e-3"}, {decimals(33554432, 0), "33,554,432"}, {decimals(2.5e12, 2), "2.50e12"},
		{RateText(0.0000889), "8.89e-5"}, {RateText(0.25), "0.25"}, {RateText(1), "1"}, {RateText(0), "below 1e-300"}, {RateText(1e-300), "1.00e-300"},
		{cellText(0.0000889), "8.9e-5"}, {cellText(0.01), "0.010"}, {cellText(0), "<1e-99"}, {cellText(0.00099999), "1.0e-3"}, {cellText(1), "1.0"},
		{oneIn(1.0 / 2048), "2,048"}, {oneIn(0.8), "1.2"}, {oneIn(1e-26), "1.0e26"},
		{ratioText(9.592955), "9.593"}, {ratioText(2208.07), "2208"}, {ratioText(268435456), "2.7e8"}, {ratioText(9999.7), "1.0e4"}, {ratioText(0.144), "0.144"}, {ratioText(1.1e-16), "1e-16"},
		{memoryText(1 << 28), "32.00 MiB (33,554,432 bytes)"}, {memoryText(0), "0 bytes"}, {memoryText(3), "1 byte"}, {memoryText(8 << 33), "8.00 GiB (8,192.00 MiB)"},
		{memoryText(80), "10 bytes (9.54e-6 MiB)"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestPlanningDocument runs the commands that docs/planning.md shows and wants
// what it shows of their output. A line "..." stands for any lines.
func TestPlanningDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/planning.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for i, block := range strings.Split(string(text), "```console\n") {
		shown, _, _ := strings.Cut(block, "```")
		if i == 0 {
			continue
		}
		for _, command := range strings.Split(shown, "$ spamgate plan")[1:] {
			commands++
			args, want, _ := strings.Cut(command, "\n")
			got, err := runPlan(strings.Fields(args)...)
			if err != nil {
				got = fmt.Sprintf("spamgate: %v\n", err)
			}
			if !matchesShown(got, want) {
				t.Errorf("spamgate plan%s prints\n%s\nand the document shows\n%s", args, got, want)
			}
		}
	}
	if commands < 5 {
		t.Errorf("%d commands found: is the document still written as the test reads it?", commands)
	}
}

// matchesShown reports whether got is shown, in which "..." lines stand for any
// lines.
func matchesShown(got, shown string) bool {
	for i, part := range strings.Split("\n"+shown, "\n...\n") {
		part = strings.Trim(part, "\n")
		pos := strings.Index(got, part)
		if pos < 0 || i == 0 && pos > 0 {
			return false
		}
		got = got[pos+len(part):]
	}
	return strings.HasSuffix(shown, "...\n") || strings.Trim(got, "\n") == ""
}

var errWriter = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errWriter }

// TestPlanTripleHashing: a small filter of double has more bits than independent hashes
// would need, since one key in 33 bits has a rate of 0.007 where those have 7.9e-7. A
// large one is not larger.
func TestPlanTripleHashing(t *testing.T) {
	for _, c := range []struct {
		args        []string
		least, most uint64
	}{
		{[]string{"--entries=1", "--fpr=1e-6", "--family=double"}, 400, 10_000},
		{[]string{"--entries=10", "--fpr=1e-6", "--family=double"}, 600, 20_000},
		{[]string{"--entries=1000", "--fpr=1e-12", "--family=double:murmur3"}, 300_000, 1_000_000},
		{[]string{"--entries=10M", "--fpr=1e-6", "--family=double"}, 287_550_000, 287_570_000},
		{[]string{"--entries=10", "--fpr=1e-6", "--family=digest"}, 300, 310},
	} {
		out, err := runPlan(append(c.args, "--json")...)
		if err != nil {
			t.Fatalf("%v: %v", c.args, err)
		}
		var r Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if r.Bits < c.least || r.Bits > c.most || *r.FPR > *r.FPRAsked {
			t.Errorf("%v: %d bits and a rate of %v, want %d to %d", c.args, r.Bits, r.FPR, c.least, c.most)
		}
	}
	if out, err := runPlan("--entries=1", "--bits=33", "--hashes=20", "--family=double", "--json"); err != nil || !strings.Contains(out, `"fpr": 0.02`) {
		t.Errorf("33 bits: %s, %v", out, err)
	}
}
