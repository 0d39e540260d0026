package harness

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// An Output collects the output of a process. A test can wait for a line of it.
type Output struct {
	t    testing.TB
	name string

	mu       sync.Mutex
	changed  *sync.Cond
	text     bytes.Buffer
	ended    bool
	keepLine func(line string) bool // nil keeps all lines
	sifted   int                    // length of the text that keepLine has seen
}

// KeepOnly drops all later lines for which keep returns false. A long test cannot hold
// them all.
func (l *Output) KeepOnly(keep func(line string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keepLine, l.sifted = keep, l.text.Len()
}

// dropLines drops lines from the part of the text that keepLine has not seen.
func (l *Output) dropLines() {
	fresh := l.text.Bytes()[l.sifted:]
	kept := fresh[:0]
	whole := bytes.LastIndexByte(fresh, '\n') + 1
	for line := range bytes.Lines(fresh[:whole]) {
		if l.keepLine(string(line)) {
			kept = append(kept, line...)
		}
	}
	done := l.sifted + len(kept)
	kept = append(kept, fresh[whole:]...)
	l.text.Truncate(l.sifted + len(kept))
	l.sifted = done
}

// A failed test shows the last lines of an output, and the beginning of each.
const (
	shownLines   = 30
	shownColumns = 400
)

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-shownLines):]
	for i, line := range lines {
		if len(line) > shownColumns {
			lines[i] = line[:shownColumns] + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// NewOutput returns an Output whose last lines a failed test shows.
func NewOutput(t testing.TB, name string) *Output {
	l := &Output{t: t, name: name}
	l.changed = sync.NewCond(&l.mu)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, tail(l.String()))
		}
	})
	return l
}

func (l *Output) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.keepLine != nil {
		l.dropLines()
	}
	l.changed.Broadcast()
	return len(p), nil
}

// End tells those who wait that nothing more comes.
func (l *Output) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.changed.Broadcast()
}

func (l *Output) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Wait waits for a whole line that matches, and returns it.
func (l *Output) Wait(what string, match func(line string) bool) string {
	l.t.Helper()
	late := false
	timer := time.AfterFunc(WorkTimeout, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.changed.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := 0
	for {
		for {
			rest := l.text.Bytes()[seen:]
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			seen += i + 1
			if line := string(rest[:i]); match(line) {
				return line
			}
		}
		if l.ended || late {
			l.t.Fatalf("%s: never saw %s", l.name, what)
		}
		l.changed.Wait()
	}
}
