package store

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Raising the limit of a file's size, which says nothing of its entries, does not
// let in what is held for another reason.
func TestReloadMaxBytesKeepsHolding(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(2000, 0))
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	write(t, path, manyLines(1100, 0))
	if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
		t.Fatalf("%v, want %v", err, ErrShrunk)
	}
	c.Lists = []List{c.Lists[0]}
	c.Lists[0].MaxBytes = 1 << 20
	must(t, s.Reload(context.Background(), c))
	if l := s.Set().Stats().Lists[0]; l.Entries != 2000 || !errors.Is(l.Err, ErrShrunk) {
		t.Errorf("%d entries, %v", l.Entries, l.Err)
	}
	// What is held for its size is looked at again.
	c.Lists = []List{c.Lists[0]}
	c.Lists[0].MaxBytes = 10
	must(t, s.Reload(context.Background(), c))
	rescan(t, s) // waits for the file to have been left alone
	if l := s.Set().Stats().Lists[0]; l.Entries != 2000 || !errors.Is(l.Err, ErrTooBig) {
		t.Errorf("%d entries, %v", l.Entries, l.Err)
	}
	write(t, path, manyLines(2001, 0))
	c.Lists = []List{c.Lists[0]}
	c.Lists[0].MaxBytes = 0
	must(t, s.Reload(context.Background(), c))
	if set, err := rescan(t, s); err != nil || set.Stats().Entries != 2001 {
		t.Errorf("%d entries, %v", set.Stats().Entries, err)
	}
}

// A list is not taken over with settings under which its files are held: the error
// says what to do, and that the gate goes on.
func TestReloadHoldsAtNewSettings(t *testing.T) {
	c := stateful(t, blockList("spam", write(t, inDir(t, "spam.txt"), "example.com\nexample.net\n")))
	c.Protect = []string{"example.net"}
	s := openStill(t, c)
	for range 2 {
		hold := c
		hold.Lists = []List{c.Lists[0]}
		hold.Lists[0].OnProtected = HoldProtected
		err := s.Reload(context.Background(), hold)
		if !errors.Is(err, ErrProtected) {
			t.Fatalf("%v, want %v", err, ErrProtected)
		}
		for _, want := range []string{`"spam" has no usable version with its new settings: `, "take the entry out, or ", "the gate goes on with the old configuration"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %q", err, want)
			}
		}
		if strings.Contains(err.Error(), "optional") {
			t.Errorf("%v\nbut optional does not help", err)
		}
		if l := s.Set().Stats().Lists[0]; l.Err != nil || l.Entries != 1 {
			t.Errorf("%d entries, %v", l.Entries, l.Err)
		}
	}
	must(t, s.Reload(context.Background(), c))
}
