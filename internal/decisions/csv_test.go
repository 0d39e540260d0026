package decisions

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestCSV reads what it wrote: each row is whole whatever its texts hold, and no cell is a formula.
func TestCSV(t *testing.T) {
	var b strings.Builder
	w := NewCSV(&b)
	rows := []Decision{
		{ID: "A", Time: time.Date(2026, 11, 22, 15, 39, 26, 839_000_000, time.UTC), Count: 3, Sender: `"a,b"@x.example`, Recipients: []string{"c@x", "d@x"},
			Attrs: []Attr{{"source", "b.txt:1"}, {"proof", `spf: "pass"`}, {"empty", ""}}, Duration: time.Millisecond, Size: 10},
	}
	for _, formula := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\x00", "\xff", "a\x1b[31m", "a\u009b31m", "a\u202eb"} {
		rows = append(rows, Decision{Sender: formula, Helo: formula, Reason: formula, Reply: formula, Recipients: []string{formula}})
	}
	for _, d := range rows {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	read, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(read) != len(rows)+1 {
		t.Fatalf("%d rows, %v", len(read), err)
	}
	if got, want := strings.Join(read[1], "|"), `2026-11-22T15:39:26.839Z|A|||3||||||"a,b"@x.example|c@x d@x||||||||10|1ms|source=b.txt:1 proof="spf: \"pass\"" empty=""`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, row := range read {
		for _, cell := range row {
			if strings.IndexAny(cell, "=+-@\t\r\n") == 0 || strings.ContainsAny(cell, "\x00\x1b\u009b\u202e") || !utf8.ValidString(cell) {
				t.Errorf("a dangerous cell: %q", cell)
			}
		}
	}
}

// TestCSVEmpty: without a decision there are the names of the columns.
func TestCSVEmpty(t *testing.T) {
	var b strings.Builder
	if err := NewCSV(&b).Flush(); err != nil || !strings.HasPrefix(b.String(), "time,id,event,action,") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
