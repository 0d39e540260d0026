package hits

import (
	"testing"
)

// What another process has written counts once, also where our own file cannot be
// written after it was read, and is read again.
func TestMergeTwice(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	today := c.set("2026-03-02")
	ours, _ := open(t, dir, c, Options{})
	ours.Record("a", spread(1))
	if err := ours.Save(); err != nil {
		t.Fatal(err)
	}
	theirs, _ := open(t, dir, c, Options{})
	for i := range 5 {
		theirs.Record("a", spread(i))
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Read(ours.options.Dir, ours.options.Name("a"), testKey)
	if err != nil {
		t.Fatal(err)
	}
	ours.Record("a", spread(9))
	for range 3 {
		ours.list("a").merge(s, today)
		if n := ours.Today("a"); n != 7 {
			t.Errorf("%d hits today, want 7", n)
		}
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Read(ours.options.Dir, ours.options.Name("a"), testKey); err != nil || s.On(today) != 7 {
		t.Errorf("%d hits in the file, want 7: %v", s.On(today), err)
	}
}

// A clock that was ahead has entries forgotten until a day to come. That does not
// keep what is known from then on unknown until that day.
func TestForgottenInDaysToCome(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	c.set("2036-03-02")
	l, _ := open(t, dir, c, Options{})
	l.list("a").forgetUntil(c.set("2036-03-02"), false)
	l.Record("a", spread(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.set("2026-03-02")
	l, _ = open(t, dir, c, Options{})
	defer l.Close()
	if known := l.Snapshot("a").Known().String(); known != "2026-03-03" {
		t.Errorf("known from %s on", known)
	}
}
