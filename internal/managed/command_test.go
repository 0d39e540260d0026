package managed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/listedit"
)

// importing adds n entries as an import does, after the lines that the list has, but for the lines of
// an entry that it takes over.
func importing(t *testing.T, e *Editor, n int, over string) Result {
	t.Helper()
	var content strings.Builder
	for _, line := range e.linesOf(t, "blocked") {
		if !strings.HasPrefix(line, over+" ") {
			fmt.Fprintln(&content, line)
		}
	}
	for i := range n {
		fmt.Fprintf(&content, "m%d.example  # bad import\n", i)
	}
	r, err := e.Replace(context.Background(), ann, "blocked", Replacement{
		Command: "import", What: fmt.Sprintf("added %d entries", n), Content: strings.NewReader(content.String()),
	}, Options{Why: "a mistake"})
	if err != nil || r.Change == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// TestUndoCommand undoes an import after small edits: what was listed before and what was changed
// since stays, whether the audit log has the entries or a file beside it.
func TestUndoCommand(t *testing.T) {
	for _, n := range []int{50, maxEdits, maxEdits + 1, undoChunk + 20_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e, ctx := offline(t), context.Background()
			add := func(name, reason string) {
				t.Helper()
				if _, err := e.Add(ctx, ann, "blocked", []NewEntry{entry(name, reason)}, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			undo := func(id string) Result {
				t.Helper()
				r, err := e.Undo(ctx, ann, id, Options{})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			add("before.example", "one")
			add("m5.example", "mine")
			imported := importing(t, e, n, "m5.example")
			for i := range 7 {
				add(fmt.Sprintf("later%d.example", i), "")
			}
			add("m7.example", "a good reason")
			if _, err := e.Remove(ctx, ann, "blocked", []Name{{Entry: "m8.example"}}, Options{}); err != nil {
				t.Fatal(err)
			}
			afterwards := e.linesOf(t, "blocked")
			dry, err := e.Undo(ctx, ann, imported.Change, Options{DryRun: true})
			if err != nil || dry.Undone != n-2 || dry.Stay != 2 || !slices.Equal(e.linesOf(t, "blocked"), afterwards) {
				t.Fatalf("dry run: %d, %d stay, %v", dry.Undone, dry.Stay, err)
			}
			r := undo(imported.Change)
			if r.Undone != n-2 || r.Stay != 2 || r.Entries[0].Entry != "m7.example" || r.Entries[0].What != Stays || !strings.Contains(r.Entries[0].Why, "a good reason") || r.Entries[1].Entry != "m8.example" {
				t.Errorf("%d undone, %d stay: %+v", r.Undone, r.Stay, r.Entries[:2])
			}
			want := []string{"before.example  # one", "m5.example  # mine", "m7.example  # a good reason"}
			for i := range 7 {
				want = append(want, fmt.Sprintf("later%d.example", i))
			}
			got := e.linesOf(t, "blocked")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the list has %q, want %q", got, want)
			}
			if _, err := e.Undo(ctx, ann, imported.Change, Options{}); !errors.Is(err, ErrUndone) {
				t.Errorf("again: %v", err)
			}
			for _, c := range e.changes(t, ChangesQuery{List: "blocked"}) {
				if c.CommandID != imported.Change {
					continue
				}
				if stays := c.Entry == "m7.example" || c.Entry == "m8.example"; c.Command != "import" || (c.Undone == nil) != stays || c.Why != "a mistake" {
					t.Errorf("%+v, undone %+v", c, c.Undone)
				}
			}
			if back := undo(r.Change); back.Undone != n-2 || back.Stay != 0 {
				t.Errorf("undo of the undo: %d, %d stay", back.Undone, back.Stay)
			}
			got = e.linesOf(t, "blocked")
			slices.Sort(got)
			slices.Sort(afterwards)
			if !slices.Equal(got, afterwards) {
				t.Errorf("then the list has %d lines, want %d", len(got), len(afterwards))
			}
		})
	}
}

// TestUndoCommandGuards: the undo of a command brings no domain back that is protected since, and
// nothing that an exception cancels; if nothing is left of it, nothing changes.
func TestUndoCommandGuards(t *testing.T) {
	e, ctx := offline(t), context.Background()
	file := filepath.Join(e.config().State.Dir, Dir, "blocked.txt")
	if err := os.WriteFile(file, []byte("gmail.com\na.example\nb.example\nc.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	removed, err := e.Remove(ctx, ann, "blocked", []Name{{Entry: "gmail.com"}, {Entry: "a.example"}, {Entry: "b.example"}}, Options{})
	if err != nil || removed.Change == "" || removed.Change == removed.Entries[0].Change {
		t.Fatalf("%+v, %v", removed, err)
	}
	if _, err := e.Add(ctx, ann, "blocked", []NewEntry{entry("!b.example", "")}, Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := e.Undo(ctx, ann, removed.Change, Options{})
	if err != nil || r.Undone != 1 || r.Stay != 2 || !strings.Contains(r.Entries[0].Why, ErrProtected.Error()) || !strings.Contains(r.Entries[1].Why, ErrCancelled.Error()) {
		t.Errorf("%+v, %v", r, err)
	}
	if got := e.linesOf(t, "blocked"); !slices.Equal(got, []string{"c.example", "!b.example", "a.example"}) {
		t.Errorf("%q", got)
	}
	added, err := e.Add(ctx, ann, "blocked", []NewEntry{entry("d.example", ""), entry("f.example", "")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range added.Entries {
		if _, err := e.Undo(ctx, ann, outcome.Change, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Undo(ctx, ann, added.Change, Options{}); !errors.Is(err, ErrUndone) {
		t.Errorf("each entry is undone: %v", err)
	}
	if added, err = e.Add(ctx, ann, "blocked", []NewEntry{entry("d.example", ""), entry("f.example", "")}, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Remove(ctx, ann, "blocked", []Name{{Entry: "d.example"}, {Entry: "f.example"}}, Options{}); err != nil {
		t.Fatal(err)
	}
	before := len(e.changes(t, ChangesQuery{}))
	if _, err := e.Undo(ctx, ann, added.Change, Options{}); !errors.Is(err, ErrConflict) || len(e.changes(t, ChangesQuery{})) != before {
		t.Errorf("nothing is left: %v", err)
	}
}

// TestUndoIsKept: what a large command changed is stored until it is old and the audit log has lost it.
func TestUndoIsKept(t *testing.T) {
	e, ctx := offline(t), context.Background()
	dir := filepath.Join(e.config().State.Dir, undoDir)
	old := time.Now().Add(-keepUndo - time.Hour)
	first := importing(t, e, maxEdits+1, "-")
	stored := filepath.Join(dir, first.Change+undoSuffix)
	if err := os.Chtimes(stored, old, old); err != nil {
		t.Fatal(err)
	}
	importing(t, e, maxEdits+2, "m")
	if _, err := os.Stat(stored); err != nil {
		t.Errorf("the log has it: %v", err)
	}
	if err := os.Remove(filepath.Join(e.config().State.Dir, listedit.LogName)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Undo(ctx, ann, first.Change, Options{}); !errors.Is(err, ErrNoChange) {
		t.Errorf("without the log: %v", err)
	}
	last := importing(t, e, maxEdits+3, "m")
	if _, err := os.Stat(stored); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is old, and the log does not have it: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(dir, last.Change+undoSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Undo(ctx, ann, last.Change, Options{}); !errors.Is(err, ErrNoChange) || !strings.Contains(err.Error(), "rollback") {
		t.Errorf("without the file: %v", err)
	}
}

// TestDrops: a rollback names the edits since the version, without those that were undone.
func TestDrops(t *testing.T) {
	e, ctx := offline(t), context.Background()
	add := func(name string) string {
		t.Helper()
		r, err := e.Add(ctx, ann, "blocked", []NewEntry{entry(name, "")}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Change
	}
	undo := func(id string) {
		t.Helper()
		if _, err := e.Undo(ctx, ann, id, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	early := add("early.example")
	add("old.example")
	live := e.changes(t, ChangesQuery{Limit: 1})[0].Time
	undo(early) // of what the version has
	add("good.example")
	undo(add("wrong.example"))
	drops, err := Drops(ctx, e.Changes, "blocked", live)
	var got []string
	for _, c := range drops {
		got = append(got, c.What)
	}
	if want := []string{"added good.example", "undone: added early.example"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestDifferenceIsBounded: a change of more text than is compared has no ID, and is made.
func TestDifferenceIsBounded(t *testing.T) {
	d := &difference{old: strings.NewReader(strings.Repeat("x", 10)), w: io.Discard}
	for range maxDifference>>20 + 1 {
		if _, err := d.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if changed, same, err := d.end(); changed != nil || same || err != nil {
		t.Errorf("%v, %t, %v", changed != nil, same, err)
	}
}
