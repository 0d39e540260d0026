package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// flood logs a record with long text in each place.
func flood(l *slog.Logger, text string) []func() {
	many := make([]any, 0, 400)
	for range 200 {
		many = append(many, "key", text[:min(len(text), 400)])
	}
	return []func(){
		func() { l.Info("m", "id", "ABC", "to", text, "client", "192.0.2.1:25") },
		func() {
			l.Info("m", "id", "ABC", "a", text, "b", text, "c", errors.New(text), "client", "192.0.2.1:25")
		},
		func() { l.Info("m", "id", "ABC", "client", "192.0.2.1:25", "list", []string{text, text}) },
		func() { l.Info("m", "id", "ABC", "client", "192.0.2.1:25", "raw", []byte(text)) },
		func() { l.Info("m", "id", "ABC", "client", "192.0.2.1:25", "struct", struct{ A, B string }{text, "b"}) },
		func() { l.Info("m", "id", "ABC", "client", "192.0.2.1:25", slog.Group("g", "a", text, "b", text)) },
		func() { l.Info(text, "id", "ABC", "client", "192.0.2.1:25") },
		func() { l.With("w", text).WithGroup("g").Info("m", "id", "ABC", "client", "192.0.2.1:25", "a", text) },
		func() { l.Info("m", append([]any{"id", "ABC", "client", "192.0.2.1:25"}, many...)...) },
	}
}

// TestLongLines checks that long values are cut, and short ones are not.
func TestLongLines(t *testing.T) {
	for _, format := range []string{FormatText, FormatJSON} {
		for _, unit := range hostile {
			if unit == "" {
				continue
			}
			for _, size := range []int{100, 3900, 4096, 70_000} {
				text := strings.Repeat(unit, size/len(unit)+1)
				var buf bytes.Buffer
				for i, log := range flood(newLogger(t, Options{Format: format, Stderr: &buf}), text) {
					buf.Reset()
					log()
					line := buf.String()
					checkLine(t, line)
					if len(line) > MaxLine {
						t.Fatalf("%s, %q, call %d: a line of %d bytes", format, unit, i, len(line))
					}
					if size > MaxLine && len(line) < MaxLine/8 {
						t.Errorf("%s, %q, call %d: only %d bytes are left: %s", format, unit, i, len(line), line)
					}
					if !strings.Contains(line, "ABC") || !strings.Contains(line, "192.0.2.1:25") {
						t.Errorf("%s, %q, call %d: the id or the client is missing: %s", format, unit, i, line)
					}
					if format == FormatJSON && !json.Valid([]byte(line)) {
						t.Errorf("not JSON: %s", line)
					}
				}
			}
		}
	}
}

// TestCutIsTold checks that a cut value says so, and gives its full length.
func TestCutIsTold(t *testing.T) {
	var buf bytes.Buffer
	newLogger(t, Options{Stderr: &buf}).Info("m", "to", strings.Repeat("x", 10_000), "id", "ABC")
	if line := buf.String(); !strings.HasSuffix(line, `xx [... 10000 bytes]" id=ABC`+"\n") || len(line) < 3800 {
		t.Errorf("%d bytes: %s", len(line), line)
	}
}

// TestLongLineToSyslog checks that the limit applies to each output.
func TestLongLineToSyslog(t *testing.T) {
	path, receive := listen(t)
	l, err := newSyslog(Options{Format: FormatText, Stderr: io.Discard}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	slog.New(&limiter{Handler: l.Logger.Handler()}).Info("m", "reply", strings.Repeat("\x1b", 1<<20), "id", "ABC")
	if got := receive(); len(got) > MaxLine+100 || !strings.Contains(got, "id=ABC") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
