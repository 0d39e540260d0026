package term

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestProgress wants a bar that fits, says what comes next without obeying it,
// and is gone in the end.
func TestProgress(t *testing.T) {
	for _, columns := range []int{80, 100} {
		var out bytes.Buffer
		p := NewLine(&out, columns)
		p.Show(0, "a file called \x1b[31m "+strings.Repeat("x", 200))
		p.Show(1, "done")
		p.Finish()
		shown := strings.Split(out.String(), "\r")
		if !strings.Contains(out.String(), "a file called ?[31m...") || strings.Contains(out.String(), "\x1b[31m") {
			t.Errorf("%d columns: %q", columns, shown)
		}
		for _, line := range shown {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("a line of %d columns, want at most %d: %q", n, columns, line)
			}
		}
		if last := strings.Join(shown[len(shown)-2:], ""); strings.TrimSpace(last) != "" {
			t.Errorf("%q is left", last)
		}
	}
	Progress{}.FinishInterrupted()
	Progress{}.Show(0.5, "no terminal") // does nothing
	Progress{}.Finish()
}

// TestProgressInterrupted wants a line of its own for what comes after Ctrl-C: the
// terminal has written "^C" where the cursor was.
func TestProgressInterrupted(t *testing.T) {
	var out bytes.Buffer
	p := NewLine(&out, 80)
	p.Show(0.5, "half of it")
	p.FinishInterrupted()
	erased, ok := strings.CutSuffix(out.String(), "\r\n")
	if last := erased[strings.LastIndexByte(strings.TrimSuffix(erased, "\r"), '\r')+1:]; !ok || strings.TrimSpace(last) != "" {
		t.Errorf("%q, want the bar erased and a new line", out.String())
	}
}

func TestShortenWords(t *testing.T) {
	for _, c := range []struct {
		text string
		room int
		want string
	}{
		{"", 10, ""},
		{"ten of ten", 10, "ten of ten"},
		{"k = 11, 1048576 bits", 14, "k = 11..."},
		{"k = 11, 1048576 bits", 17, "k = 11..."},
		{"k = 11, 1048576 bits", 18, "k = 11, 1048576..."},
		{"k = 11, 1048576 bits", 19, "k = 11, 1048576..."},
		{"domains, k = 11, 2^20 bits: ideal", 30, "domains, k = 11, 2^20 bits..."},
		{"/a/path/without/spaces", 12, "/a/path/w..."},
		{"éééé éééééééé", 10, "éééé..."},
	} {
		got := shortenWords(c.text, c.room)
		if got != c.want || utf8.RuneCountInString(got) > c.room {
			t.Errorf("%q in %d: %q, want %q", c.text, c.room, got, c.want)
		}
	}
}
