package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines gathers the output of a process, which a test can wait for.
type lines struct {
	t    testing.TB
	name string

	mu      sync.Mutex
	changed *sync.Cond
	text    bytes.Buffer
	ended   bool
	keep    func(line string) bool // nil: all lines
	sifted  int                    // what keep has seen of text
}

// sift drops all lines from now on that are not to be kept: a long test can't
// hold them all.
func (l *lines) sift(keep func(line string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep, l.sifted = keep, l.text.Len()
}

// dropLines drops what is not to be kept of the whole lines that have come.
func (l *lines) dropLines() {
	fresh := l.text.Bytes()[l.sifted:]
	kept := fresh[:0]
	whole := bytes.LastIndexByte(fresh, '\n') + 1
	for line := range bytes.Lines(fresh[:whole]) {
		if l.keep(string(line)) {
			kept = append(kept, line...)
		}
	}
	done := l.sifted + len(kept)
	kept = append(kept, fresh[whole:]...)
	l.text.Truncate(l.sifted + len(kept))
	l.sifted = done
}

// What a failed test shows of an output: the last lines, and what there is room
// for of each.
const (
	shownLines   = 30
	shownColumns = 400
)

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

func newLines(t testing.TB, name string) *lines {
	l := &lines{t: t, name: name}
	l.changed = sync.NewCond(&l.mu)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, tail(l.String()))
		}
	})
	return l
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.keep != nil {
		l.dropLines()
	}
	l.changed.Broadcast()
	return len(p), nil
}

// end says that nothing more comes.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.changed.Broadcast()
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait waits for a whole line that matches and returns it.
func (l *lines) wait(what string, match func(line string) bool) string {
	l.t.Helper()
	late := false
	timer := time.AfterFunc(lateLimit, func() {
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
