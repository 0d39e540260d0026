package text

import (
	"math"
	"path/filepath"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0), "0"},
		{Number(999), "999"},
		{Number(1000), "1,000"},
		{Number(int64(16_915_025)), "16,915,025"},
		{Number(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"},
		{Count(0, "entry", "entries"), "0 entries"},
		{Count(1, "entry", "entries"), "1 entry"},
		{Count(uint64(1200), "entry", "entries"), "1,200 entries"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got := Printable("\x1b[31mbücher\xff\u202e\n"); got != "?[31mbücher???" {
		t.Errorf("%q", got)
	}
	for s, want := range map[string]bool{"": true, "\x00~\x7f": true, "\x80": false, "a@bücher.example": false} {
		if IsASCII(s) != want {
			t.Errorf("IsASCII(%q) = %v", s, !want)
		}
	}
}

func TestEscapeGlob(t *testing.T) {
	for _, name := range []string{`plain.txt`, `[a]*?\`, `\*`} {
		if ok, err := filepath.Match(EscapeGlob(name), name); !ok || err != nil {
			t.Errorf("%q: %v, %v", name, ok, err)
		}
	}
	if ok, _ := filepath.Match(EscapeGlob("*"), "a"); ok {
		t.Error("an escaped star matches")
	}
}
