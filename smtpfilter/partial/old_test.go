package partial

import (
	"testing"
	"time"
)

// TestOld: what the client has not come for within a day keeps nobody apart or waiting,
// and still tells who has the message. When the client comes it counts again.
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
	c.at = c.at.Add(oldAfter)
	apart(true)
	c.at = c.at.Add(time.Second)
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
	c.at = c.at.Add(6 * 24 * time.Hour)
	if Has(s.Recall("a@example.com", "b"), m) {
		t.Error("remembered for more than a week")
	}
}

// TestSlowerTransaction: a transaction that ends later does not take a message away. The
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

// TestUnseenFile: a file that was never read is an empty one.
func TestUnseenFile(t *testing.T) {
	if !new(file).isEmpty() {
		t.Error("it is not empty")
	}
}
