package partial

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// storePath returns a path in a temporary directory.
func storePath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "lmtp.partial")
}

// open opens a Store that ends with the test.
func open(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s := Open(path, o)
	t.Cleanup(s.Close)
	return s
}

// sumOf returns the Sum of the message with a number.
func sumOf(n int) Sum {
	return NewDigest("a@example.com", []byte(fmt.Sprintf("Message-ID: <%d>\r\n\r\n", n)), false).Sum()
}

// settle stores outcomes, written "b delivered", for the sender a@example.com.
func settle(t testing.TB, s *Store, m Sum, outcomes ...string) {
	t.Helper()
	if err := trySettle(s, m, outcomes...); err != nil {
		t.Fatal(err)
	}
}

func trySettle(s *Store, m Sum, outcomes ...string) error {
	var list []Outcome
	for _, text := range outcomes {
		var o Outcome
		var state string
		fmt.Sscan(text, &o.To, &state, &o.Words)
		for i, name := range stateNames {
			if name == state {
				o.State = State(i)
			}
		}
		list = append(list, o)
	}
	return s.Settle("a@example.com", m, list)
}

// want checks the entries of a recipient: their messages and states, in order, and whether
// they are old.
func want(t testing.TB, s *Store, to string, entries ...Entry) {
	t.Helper()
	got := s.Recall("a@example.com", to)
	for i := range got {
		got[i].Words, got[i].Old = 0, false
	}
	if fmt.Sprint(got) != fmt.Sprint(entries) && len(got)+len(entries) > 0 {
		t.Errorf("%s: %v, want %v", to, got, entries)
	}
}

func has(m Sum) Entry     { return Entry{Message: m, State: Delivered} }
func pending(m Sum) Entry { return Entry{Message: m, State: Pending} }
func refused(m Sum) Entry { return Entry{Message: m, State: Refused} }

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// clock is a clock that a test sets.
type clock struct{ instant time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.instant }
