package fleet

import (
	"errors"
	"strings"
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// TestFirstJoin shares lists that have contents of their own.
func TestFirstJoin(t *testing.T) {
	const fleets = "# of the fleet\none@example.net # reason\nTwo.example ## note\n\"a #b\"@example.net # quoted\n"
	for _, c := range []struct {
		name, own, want string // want "": nothing is changed
		added           string // by Merge
	}{
		{"empty", "# nothing\n\n", fleets, ""},
		{"a part", "  one@example.net\n", fleets, ""},
		{"all, written otherwise", ".two.example. # why\n<ONE@example.net>\n# comment\n\"a #B\"@example.net", fleets, ""},
		{"more", "one@example.net\nfour.example\n", "", "four.example\n"},
		{"another quoted name", "two.example\n\"a #c\"@example.net\n", "", "\"a #c\"@example.net\n"},
		{"a line that is no entry", "two.example\ncom\n", "", ""},
		{"the same", fleets, fleets, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fleettest.Start(t, nil)
			a, b := newGate(t, "a", s, nil), newGate(t, "b", s, nil)
			a.write("blocked", fleets)
			b.write("blocked", c.own)
			a.start()
			equal(t, "blocked", a)
			b.start()
			if c.want != "" {
				equal(t, "blocked", a, b)
				has(t, "blocked", c.want, a, b)
				return
			}
			eventually(t, "the gate says it", func() bool { return errors.Is(b.failing("blocked"), ErrDiffers) })
			if a.read("blocked") != fleets || b.read("blocked") != c.own {
				t.Errorf("got %q and %q", a.read("blocked"), b.read("blocked"))
			}
			if err := b.add("blocked", "five.example"); !errors.Is(err, ErrDiffers) {
				t.Errorf("the edit: %v", err)
			}
			if added, err := b.Merge(t.Context(), "blocked", "ann", "both"); err != nil || added != strings.Count(c.added, "\n") {
				t.Fatal(added, err)
			}
			equal(t, "blocked", a, b)
			has(t, "blocked", fleets+c.added, a, b)
		})
	}
}

// TestJoinEmptyFleet publishes the own list if the fleet's has no entries.
func TestJoinEmptyFleet(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := startGate(t, "a", s, nil), newGate(t, "b", s, nil)
	b.write("blocked", "one@example.net\n")
	equal(t, "blocked", a)
	b.start()
	equal(t, "blocked", a, b)
	has(t, "blocked", "one@example.net\n", a, b)
}

// TestTake gives the own list up.
func TestTake(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), newGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	b.write("blocked", "two@example.net\n")
	a.start()
	equal(t, "blocked", a)
	b.start()
	eventually(t, "the gate says it", func() bool { return errors.Is(b.failing("blocked"), ErrDiffers) })
	if err := b.Take(t.Context(), "blocked"); err != nil {
		t.Fatal(err)
	}
	has(t, "blocked", "one@example.net\n", a, b)
}

// TestFork lets two gates have different versions of one sequence, as after a server was put
// back: all prefer the later one.
func TestFork(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b, c := newGate(t, "a", s, nil), startGate(t, "b", s, nil), startGate(t, "c", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	has(t, "blocked", "one@example.net\n", a, b, c)
	before := equal(t, "blocked", a, b, c)
	kv, err := client(t, s).KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	old, err := kv.Get(t.Context(), "list.blocked")
	if err != nil {
		t.Fatal(err)
	}
	b.stop()
	c.stop()
	a.mustAdd("blocked", "first@example.net")
	a.stop()
	if _, err := kv.Put(t.Context(), "list.blocked", old.Value()); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.mustAdd("blocked", "second@example.net")
	a.start()
	c.start()
	v := equal(t, "blocked", a, b, c)
	if got := a.read("blocked"); !strings.Contains(got, "second") || v.Sequence != before.Sequence+1 {
		t.Errorf("got %q, %+v", got, v)
	}
}

// TestListRemoved takes a list out of one gate's configuration, and puts it back later.
func TestListRemoved(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a, b)
	b.SetLists(nil)
	a.mustAdd("blocked", "two@example.net")
	if _, err := b.list("blocked"); err == nil || b.read("blocked") != "one@example.net\n" {
		t.Errorf("b has %q", b.read("blocked"))
	}
	b.SetLists(b.o.Lists)
	equal(t, "blocked", a, b)
}
