package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"spamgate/internal/listedit"
)

// steps is how many steps TestModel takes: SPAMGATE_MANAGED_STEPS, else 100.
func steps(t *testing.T) int {
	n := 100
	if s := os.Getenv("SPAMGATE_MANAGED_STEPS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// modelChange is a change as a plain model remembers it.
type modelChange struct {
	id, entry, before, after string // reasons; "" without the entry
	undone                   bool
}

// TestModel makes random edits, and compares the list with a map from entries to reasons. The
// audit log must explain how the list became what it is.
func TestModel(t *testing.T) {
	e, ctx := offline(t), context.Background()
	random := rand.New(rand.NewPCG(17, 1))
	model := map[string]string{}
	var changes []*modelChange
	note := func(entry, before, after string, r Result) {
		model[entry] = after
		if after == "" {
			delete(model, entry)
		}
		changes = append(changes, &modelChange{id: r.Entries[0].Change, entry: entry, before: before, after: after})
	}
	for step := range steps(t) {
		name := fmt.Sprintf("e%d.example", random.IntN(8))
		was, listed := model[name]
		switch random.IntN(4) {
		case 0, 1:
			reason := fmt.Sprintf("r%d", random.IntN(3))
			r, err := e.Add(ctx, ann, "blocked", []NewEntry{entry(name, reason)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if changed := was != reason; r.Changed != changed || listed && changed != (r.Entries[0].What == listedit.Updated) {
				t.Fatalf("step %d: %s had %q, gets %q: %+v", step, name, was, reason, r)
			} else if changed {
				note(name, was, reason, r)
			}
		case 2:
			r, err := e.Remove(ctx, ann, "blocked", []Name{{Entry: name}}, Options{})
			if listed != (err == nil) || err != nil && !errors.Is(err, ErrNotListed) {
				t.Fatalf("step %d: removing %s: %v", step, name, err)
			}
			if listed {
				note(name, was, "", r)
			}
		case 3:
			if len(changes) == 0 {
				continue
			}
			c := changes[random.IntN(len(changes))]
			current := model[c.entry]
			r, err := e.Undo(ctx, ann, c.id, Options{})
			switch {
			case c.undone:
				if !errors.Is(err, ErrUndone) {
					t.Fatalf("step %d: undoing again: %v", step, err)
				}
			case current != c.after:
				if !errors.Is(err, ErrConflict) {
					t.Fatalf("step %d: %s has %q, and had %q: %v", step, c.entry, current, c.after, err)
				}
			case err != nil:
				t.Fatalf("step %d: %v", step, err)
			default:
				c.undone = true
				note(c.entry, c.after, c.before, r)
			}
		}
		got := map[string]string{}
		for _, x := range read(t, e, "blocked") {
			got[x.Key] = x.Reason
		}
		if !maps.Equal(got, model) {
			t.Fatalf("step %d: the list is %v, want %v", step, got, model)
		}
	}
	log := e.changes(t, ChangesQuery{List: "blocked"})
	if len(log) != len(changes) {
		t.Fatalf("%d records, want %d", len(log), len(changes))
	}
	replayed := map[string][]string{}
	for i, c := range slices.Backward(log) {
		want := changes[len(log)-1-i]
		if c.ID != want.id || (c.Undone != nil) != want.undone || written(c) != want.entry || !slices.Equal(c.Before, replayed[c.Entry]) {
			t.Errorf("record %d is %+v, want %+v", i, c, want)
		}
		replayed[c.Entry] = c.After
	}
}

// TestConcurrent has several Editors add, remove and undo at once, as several processes do: no
// edit is lost, and each is in the audit log once.
func TestConcurrent(t *testing.T) {
	e, ctx := offline(t), context.Background()
	const editors, each = 4, 15
	var all sync.WaitGroup
	for n := range editors {
		all.Go(func() {
			editor := New(e.config, nil)
			for i := range each {
				name := fmt.Sprintf("e%d-%d.example", n, i)
				r, err := editor.Add(ctx, ann, "blocked", []NewEntry{entry(name, "r")}, Options{})
				if err == nil && i%3 == 1 {
					_, err = editor.Remove(ctx, ann, "blocked", []Name{{Entry: name}}, Options{})
				} else if err == nil && i%3 == 2 {
					_, err = editor.Undo(ctx, ann, r.Entries[0].Change, Options{})
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	if got := len(read(t, e, "blocked")); got != editors*each/3 {
		t.Errorf("%d entries, want %d", got, editors*each/3)
	}
	ids := map[string]bool{}
	for _, c := range e.changes(t, ChangesQuery{List: "blocked"}) {
		ids[c.ID] = true
	}
	if want := editors * each * 5 / 3; len(ids) != want {
		t.Errorf("%d changes, want %d", len(ids), want)
	}
}

// TestUndoTwiceAtOnce: of several undos of one change at the same time one is made.
func TestUndoTwiceAtOnce(t *testing.T) {
	e, ctx := offline(t), context.Background()
	r, err := e.Add(ctx, ann, "blocked", []NewEntry{entry("spam.example", "r")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := e.Undo(ctx, ann, r.Entries[0].Change, Options{})
			done <- err
		}()
	}
	made := 0
	for range 4 {
		if err := <-done; err == nil {
			made++
		} else if !errors.Is(err, ErrUndone) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d undos were made", made)
	}
}
