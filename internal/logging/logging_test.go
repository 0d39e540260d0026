package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile holds texts that attack a log, or the terminal that shows it.
var hostile = []string{
	"two\r\nlines", "\nfake level=ERROR", "\x1b[31mred\x1b[0m", "\x1b]0;title\a", "\x00", "\x7f", "a\x7fb", "\xff\xfe",
	"\u009b31m", "\u202egnp.exe", "\u2028", "\u00a0", "\ufeff", "\U000e0001", "\ufffd", "a=b c=d", `"quoted"`, `back\slash`, "tab\t",
	"\xc2", "\u0085", "plain", "bücher.example", "<a@b.example>", "&", "",
}

func newLogger(t *testing.T, o Options) *slog.Logger {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l.Logger
}

// checkLine checks that out is one line without terminal controls.
func checkLine(t *testing.T, out string) {
	t.Helper()
	line, ok := strings.CutSuffix(out, "\n")
	if !ok || line == "" {
		t.Fatalf("%q is no line", out)
	}
	if !utf8.ValidString(line) {
		t.Errorf("%q is not UTF-8", line)
	}
	for _, r := range line {
		if !visible(r) {
			t.Errorf("%q holds %q", line, r)
		}
	}
}

// TestHostile logs hostile text in each place.
func TestHostile(t *testing.T) {
	for _, format := range []string{FormatText, FormatJSON} {
		for _, s := range hostile {
			var buf bytes.Buffer
			l := newLogger(t, Options{Format: format, Stderr: &buf})
			for _, log := range []func(){
				func() { l.Info("m", "from", s) },
				func() { l.Info(s) },
				func() { l.Info("m", "k"+s, 1) },
				func() { l.Info("m", "err", errors.New(s)) },
				func() { l.Info("m", "rcpt", []string{s, s}) },
				func() { l.Info("m", "raw", []byte(s)) },
				func() { l.Info("m", "struct", struct{ A string }{s}) },
				func() { l.With("from", s).WithGroup("g"+s).Info("m", "k", s) },
			} {
				buf.Reset()
				log()
				checkLine(t, buf.String())
			}
		}
	}
}

// TestJSONKeepsText checks that escaping does not change what a program reads.
func TestJSONKeepsText(t *testing.T) {
	for _, s := range hostile {
		var buf bytes.Buffer
		newLogger(t, Options{Format: FormatJSON, Stderr: &buf}).Info("m", "from", s)
		var got struct{ From string }
		if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v", buf.String(), err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && got.From != want {
			t.Errorf("%q came back as %q", s, got.From)
		}
	}
}

// TestTextForm checks the exact form of lines.
func TestTextForm(t *testing.T) {
	var buf bytes.Buffer
	newLogger(t, Options{Stderr: &buf}).Info("mail refused", "id", "x1", "from", "a@b.example", "helo", "two words", "del", "\x7f")
	want := regexp.MustCompile(`^time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) level=INFO msg="mail refused" id=x1 from=a@b.example helo="two words" del=\\x7f` + "\n$")
	if !want.Match(buf.Bytes()) {
		t.Errorf("got %q", buf.String())
	}
}

func TestLevel(t *testing.T) {
	var buf bytes.Buffer
	level := new(slog.LevelVar)
	level.Set(slog.LevelWarn)
	l := newLogger(t, Options{Level: level, Stderr: &buf})
	l.Info("no")
	l.Warn("yes")
	level.Set(slog.LevelDebug)
	l.Debug("now")
	if got := buf.String(); strings.Contains(got, "no\n") || !strings.Contains(got, "yes") || !strings.Contains(got, "now") {
		t.Errorf("got %q", got)
	}
}

func TestUnknownOptions(t *testing.T) {
	for _, o := range []Options{{Format: "xml"}, {Output: "stdout"}} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

// failing is a writer that always fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestEscaperReturnsErrors(t *testing.T) {
	for _, line := range []string{"plain\n", "\x7f\n"} {
		e := &escaper{w: failing{io.ErrClosedPipe}, escape: appendGoEscape}
		if n, err := e.Write([]byte(line)); n != 0 || err != io.ErrClosedPipe {
			t.Errorf("Write(%q) = %d, %v", line, n, err)
		}
	}
}

// FuzzLine checks that no text breaks a line, in any format.
func FuzzLine(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		for _, format := range []string{FormatText, FormatJSON} {
			var buf bytes.Buffer
			newLogger(t, Options{Format: format, Stderr: &buf}).Info(value, key, value)
			checkLine(t, buf.String())
		}
	})
}
