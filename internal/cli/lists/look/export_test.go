package look

import (
	"bufio"
	"math"
	"strings"
	"testing"
)

// TestLaterSerial: a secondary always sees the number grow (RFC 1982), whatever the clock
// says.
func TestLaterSerial(t *testing.T) {
	for _, c := range []struct{ before, serial, want uint32 }{
		{1, 1_800_000_000, 1_800_000_000},
		{1_800_000_000, 1_800_000_001, 1_800_000_001},
		{1_800_000_000, 1_800_000_000, 1_800_000_001},
		{1_800_000_000, 1_700_000_000, 1_800_000_001}, // the clock was set back
		{math.MaxUint32, math.MaxUint32 - 5, 0},
		{math.MaxUint32 - 1, 3, 3},
		{3_000_000_000, 1, 1}, // more than 2^31 before is later
	} {
		if got := laterSerial(c.before, c.serial); got != c.want || int32(got-c.before) <= 0 {
			t.Errorf("after %d, at %d: %d, want %d", c.before, c.serial, got, c.want)
		}
	}
}

func TestSameWriter(t *testing.T) {
	for _, c := range []struct {
		file, written string
		same          bool
	}{
		{"abc", "abc", true}, {"", "", true}, {"abc", "abd", false}, {"abc", "ab", false}, {"ab", "abc", false},
	} {
		w := sameWriter{file: bufio.NewReader(strings.NewReader(c.file))}
		w.Write([]byte(c.written))
		if w.ended() != c.same {
			t.Errorf("%q in a file with %q: %v, want %v", c.written, c.file, w.ended(), c.same)
		}
	}
}
