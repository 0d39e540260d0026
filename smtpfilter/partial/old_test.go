package partial

import (
	"testing"
	"time"
)

// TestOld wants an entry that the client has not come back for within a day to separate
// nobody and to make nobody wait, but still to say who has the message. It counts again
// when the client comes.
func TestOld(t *testing.T) {
	c := newClock()
	s := open(t, storePath(t), Options{now: c.now})
	m := sumOf(1)
	apart := func(want bool) {
		t.Helper()
		var g Group
		g.Add(s.Recall("a@example.com", "b"))
		if g.Add(s.Recall("a@example.com", "p")) == want {
			t.Errorf("kept apart: %t, want %t", !want, want)
		}
	}
	settle(t, s, m, "b delivered", "p pending")
	c.instant = c.instant.Add(oldAfter)
	apart(true)
	c.instant = c.instant.Add(time.Second)
	apart(false)
	if !s.Turn("a@example.com", "p") {
		t.Error("kept waiting")
	}
	known := s.Recall("a@example.com", "b")
	if !Has(known, m) || !HasAny(known) {
		t.Error("who has the message is forgotten")
	}
	var g Group
	if g.Add(known); !g.Add(known) || !g.MayHave() {
		t.Error("all have the message, and this is not known")
	}
	settle(t, s, m, "p pending") // the client comes with the message
	apart(true)
	settle(t, s, m, "b delivered")
	if s.Turn("a@example.com", "p") {
		t.Error("not kept waiting")
	}
	c.instant = c.instant.Add(6 * 24 * time.Hour)
	if Has(s.Recall("a@example.com", "b"), m) {
		t.Error("remembered for more than a week")
	}
}

// TestSlowerTransaction wants a transaction that ends later not to undo a delivery. The
// final reply does.
func TestSlowerTransaction(t *testing.T) {
	path := storePath(t)
	s := open(t, path, Options{})
	m := sumOf(1)
	settle(t, s, m, "b pending")
	settle(t, s, m, "b delivered")
	for _, slower := range []string{"b pending", "b refused x"} {
		settle(t, s, m, slower)
		want(t, s, "b", has(m))
		want(t, open(t, path, Options{}), "b", has(m))
	}
	settle(t, s, m, "b settled")
	want(t, s, "b")
}

// TestUnseenFile wants a file that was never read to count as empty.
func TestUnseenFile(t *testing.T) {
	if !new(file).isEmpty() {
		t.Error("it is not empty")
	}
}
