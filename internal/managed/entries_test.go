package managed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/listedit"
)

// TestEdits edits lists of a running gate: each edit counts when the call returns, and the
// audit log has it.
func TestEdits(t *testing.T) {
	g := newGate(t)
	ctx := context.Background()
	added, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("Spam.Example", "bots"), {Name: Name{Entry: "x@bulk.example"}, Until: inAnHour, Note: "see 17"}}, Options{Why: "asked by bob"})
	if err != nil || !added.Changed || added.Generation == 0 || added.NotLive != "" {
		t.Fatalf("%+v, %v", added, err)
	}
	want := []string{"Spam.Example  # bots", "x@bulk.example  # until=" + inAnHour.Format(time.RFC3339) + " ## see 17"}
	if got := g.linesOf(t, "blocked"); !slices.Equal(got, want) {
		t.Errorf("the list is %q, want %q", got, want)
	}
	if got := g.action("a@b.spam.example"); got != "reject" {
		t.Errorf("a sender that was added is %s", got)
	}
	if e := added.Entries[0]; e.What != listedit.Added || e.Entry != "spam.example" || e.Line != 3 || e.Reason != "bots" || !isID(e.Change) {
		t.Errorf("outcome %+v", e)
	}
	again, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("spam.example.", "bots")}, Options{})
	if err != nil || again.Changed || again.Entries[0].What != listedit.Present || again.Entries[0].Change != "" {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	updated, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("spam.example", "more bots")}, Options{})
	if err != nil || updated.Entries[0].What != listedit.Updated || updated.Entries[0].Was.Reason != "bots" {
		t.Errorf("with another reason: %+v, %v", updated, err)
	}
	if _, err := g.Undo(ctx, ann, updated.Entries[0].Change, Options{}); err != nil {
		t.Error(err)
	}
	if got := g.linesOf(t, "blocked"); !slices.Equal(got, want) {
		t.Errorf("after the undo the list is %q, want %q", got, want)
	}
	removed, err := g.Remove(ctx, ann, "blocked", []Name{{Entry: "SPAM.example"}}, Options{})
	if err != nil || removed.Entries[0].What != Removed || removed.Entries[0].Reason != "bots" || g.action("a@b.spam.example") != "accept" {
		t.Errorf("removed: %+v, %v", removed, err)
	}
	undone, err := g.Undo(ctx, Account("bob", "admin", ThroughAPI), removed.Entries[0].Change, Options{Why: "they are back"})
	if err != nil || g.action("a@b.spam.example") != "reject" {
		t.Errorf("undone: %+v, %v", undone, err)
	}
	changes := g.changes(t, ChangesQuery{Entry: "spam.example"})
	var got []string
	for _, c := range changes {
		got = append(got, c.By+" "+c.Through+" "+c.Command+" "+c.What)
	}
	wantLog := []string{
		"bob api undo undone: removed spam.example",
		"ann console remove removed spam.example",
		"ann console undo undone: updated spam.example",
		"ann console add updated spam.example",
		"ann console add added spam.example",
	}
	if !slices.Equal(got, wantLog) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantLog, "\n"))
	}
	if c := changes[1]; c.Undone == nil || c.Undone.By != "bob" || c.Undone.ID != undone.Entries[0].Change || changes[0].Undoes != c.ID {
		t.Errorf("the removal is undone: %+v", c.Undone)
	}
	if c := changes[4]; c.Why != "asked by bob" || c.Role != "editor" || c.List != "blocked" || !slices.Equal(c.After, []string{"Spam.Example  # bots"}) || c.Before != nil || c.Undone != nil {
		t.Errorf("the addition is %+v", c)
	}
	if dry, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("dry.example", "")}, Options{DryRun: true}); err != nil || !dry.Changed || g.action("a@dry.example") != "accept" || len(g.changes(t, ChangesQuery{Entry: "dry.example"})) != 0 {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
}

// TestRefused wants a clear error of its kind for what cannot be done, and nothing changed.
func TestRefused(t *testing.T) {
	g := newGate(t)
	ctx := context.Background()
	if _, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("!press@spam.example", ""), entry("spam.example", "")}, Options{}); err != nil {
		t.Fatal(err)
	}
	add := func(list string, entries ...NewEntry) func() error {
		return func() error { _, err := g.Add(ctx, ann, list, entries, Options{}); return err }
	}
	remove := func(list string, names ...Name) func() error {
		return func() error { _, err := g.Remove(ctx, ann, list, names, Options{}); return err }
	}
	undo := func(id string) func() error {
		return func() error { _, err := g.Undo(ctx, ann, id, Options{}); return err }
	}
	for name, c := range map[string]struct {
		do   func() error
		want error
		says string
	}{
		"no list":                 {add("no", entry("a.example", "")), ErrNoList, "there is blocked, allowed"},
		"a file of the admin":     {add("file", entry("a.example", "")), ErrNotManaged, "managed = true"},
		"an invalid entry":        {add("blocked", entry("a.example", ""), entry("com", "")), ErrEntry, "single label"},
		"no entry":                {add("blocked", entry(" ", "")), ErrEntry, "no entry"},
		"an exception in allowed": {add("allowed", entry("!a.example", "")), ErrEntry, "allow list"},
		"a protected domain":      {add("blocked", entry("example.org", "")), ErrProtected, "example.org"},
		"a protected provider":    {add("blocked", entry("gmail.com", "")), ErrProtected, "protected name"},
		"cancelled":               {add("blocked", entry("a.example", ""), entry("press@spam.example", "")), ErrCancelled, "remove that first"},
		"over":                    {add("blocked", NewEntry{Name: Name{Entry: "a.example"}, Until: inAnHour.Add(-2 * time.Hour)}), ErrEntry, "is over"},
		"two lines":               {add("blocked", entry("a.example\nb.example", "")), ErrEntry, ""},
		"a comment in the entry":  {add("blocked", entry("a.example # until=2020-01-01", "")), ErrEntry, ""},
		"a reason of two lines":   {add("blocked", entry("a.example", "x\nb.example")), ErrEntry, "line end"},
		"a reason with ##":        {add("blocked", entry("a.example", "x ## y")), ErrEntry, "private note"},
		"a reason with until=":    {add("blocked", entry("a.example", "until=2099-01-01")), ErrEntry, "give the time separately"},
		"a long reason":           {add("blocked", entry("a.example", strings.Repeat("x", 10_000))), ErrEntry, "shorten"},
		"for nobody":              {add("personal", entry("a.example", "")), ErrEntry, "needs the recipients"},
		"for somebody":            {add("blocked", NewEntry{Name: Name{Entry: "a.example", For: "ann@example.net"}}), ErrEntry, "count for all recipients"},
		"for two":                 {add("personal", NewEntry{Name: Name{Entry: "a.example", For: "ann@example.net bob@example.net"}}), ErrEntry, "the recipient"},
		"for all but one":         {add("personal", NewEntry{Name: Name{Entry: "a.example", For: "!ann@example.net"}}), ErrEntry, ""},
		"two sides in the entry":  {add("personal", NewEntry{Name: Name{Entry: "b.example a.example", For: "ann@example.net"}}), ErrEntry, "white space"},
		"removing what is absent": {remove("blocked", Name{Entry: "spam.example"}, Name{Entry: "absent.example"}), ErrNotListed, "absent.example"},
		"removing nonsense":       {remove("blocked", Name{Entry: "a b"}), ErrEntry, "white space"},
		"undoing nothing":         {undo("abcdefghijklmnop"), ErrNoChange, "no such change"},
		"undoing nonsense":        {undo("../../etc/passwd"), ErrNoChange, "no such change"},
	} {
		t.Run(name, func(t *testing.T) {
			before, records := g.linesOf(t, "blocked"), len(g.changes(t, ChangesQuery{}))
			err := c.do()
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q, and that it says %q", err, c.want, c.says)
			}
			if after := g.linesOf(t, "blocked"); !slices.Equal(before, after) || len(g.changes(t, ChangesQuery{})) != records {
				t.Errorf("changed: %q, %q", before, after)
			}
		})
	}
}

// TestUndoConflicts undoes changes of entries that were changed since.
func TestUndoConflicts(t *testing.T) {
	e, ctx := offline(t), context.Background()
	do := func(r Result, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r.Entries[0].Change
	}
	wants := func(id string, want error) {
		t.Helper()
		before := e.linesOf(t, "blocked")
		if _, err := e.Undo(ctx, ann, id, Options{}); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		} else if err != nil && !slices.Equal(before, e.linesOf(t, "blocked")) {
			t.Error("the list has changed")
		}
	}
	add := func(reason string) string {
		return do(e.Add(ctx, ann, "blocked", []NewEntry{entry("spam.example", reason)}, Options{}))
	}
	first := add("one")
	second := add("two")
	wants(first, ErrConflict)
	undone := do(e.Undo(ctx, ann, second, Options{}))
	wants(second, ErrUndone)
	wants(undone, nil) // so that it is "two" again
	wants(undone, ErrUndone)
	if got := e.linesOf(t, "blocked"); !slices.Equal(got, []string{"spam.example  # two"}) {
		t.Errorf("%q", got)
	}
	removed := do(e.Remove(ctx, ann, "blocked", []Name{{Entry: "spam.example"}}, Options{}))
	do(e.Add(ctx, ann, "blocked", []NewEntry{entry("!spam.example", "")}, Options{}))
	wants(removed, ErrCancelled)

	// What the file had before the domain was protected does not come back.
	file := filepath.Join(e.config().State.Dir, Dir, "blocked.txt")
	if err := os.WriteFile(file, []byte("gmail.com\nother.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(do(e.Remove(ctx, ann, "blocked", []Name{{Entry: "gmail.com"}}, Options{})), ErrProtected)
}

// TestRecipients edits a list whose entries count for recipients.
func TestRecipients(t *testing.T) {
	g, ctx := newGate(t), context.Background()
	x := NewEntry{Name: Name{Entry: "Shop.Example", For: "Ann@Example.NET"}, Reason: "her wish"}
	added, err := g.Add(ctx, ann, "personal", []NewEntry{x}, Options{})
	if err != nil || added.Entries[0].For != "ann@example.net" || added.Entries[0].Entry != "shop.example" {
		t.Fatalf("%+v, %v", added, err)
	}
	if got := g.changes(t, ChangesQuery{Want: func(c *Change) bool { return c.For == "ann@example.net" }}); len(got) != 1 || got[0].Entry != "shop.example" {
		t.Errorf("changes %+v", got)
	}
	if _, err := g.Remove(ctx, ann, "personal", []Name{{Entry: "shop.example", For: "bob@example.net"}}, Options{}); !errors.Is(err, ErrNotListed) {
		t.Error(err)
	}
	if _, err := g.Undo(ctx, ann, added.Entries[0].Change, Options{}); err != nil || len(g.linesOf(t, "personal")) != 0 {
		t.Errorf("%q, %v", g.linesOf(t, "personal"), err)
	}
}

// TestRepeatedLines undoes edits of an entry that has several lines.
func TestRepeatedLines(t *testing.T) {
	e, ctx := offline(t), context.Background()
	path := filepath.Join(e.config().State.Dir, Dir, "blocked.txt")
	if err := os.WriteFile(path, []byte("spam.example # one\r\nother.example\r\n.Spam.example  # two\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := e.Remove(ctx, ann, "blocked", []Name{{Entry: "spam.example"}}, Options{})
	if err != nil || len(r.Entries[0].Removed) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := e.Undo(ctx, ann, r.Entries[0].Change, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "other.example\r\nspam.example # one\r\n.Spam.example  # two\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	r, err = e.Add(ctx, ann, "blocked", []NewEntry{{Name: Name{Entry: "spam.example"}, Until: inAnHour}}, Options{})
	if err != nil || r.Entries[0].Repeated != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := e.Undo(ctx, ann, r.Entries[0].Change, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := e.linesOf(t, "blocked"); !slices.Equal(got, []string{"other.example\r", "spam.example # one\r", ".Spam.example  # two\r"}) {
		t.Errorf("%q", got)
	}
}

// TestUntilText: an end that a list has is the one that was asked for.
func TestUntilText(t *testing.T) {
	midnight := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		until time.Time
		want  string
	}{
		{midnight, "2030-01-01"}, // to the end of that day
		{midnight.Add(-1), "2030-01-01"},
		{midnight.Add(1), "2030-01-02T00:00:01Z"},
		{midnight.Add(time.Hour).In(time.FixedZone("", 3600)), "2030-01-02T01:00:00Z"},
	} {
		got := listfile.UntilText(c.until)
		ends, err := listfile.ParseUntil(got)
		if early := c.until.Sub(time.Unix(ends, 0)); got != c.want || err != nil || early > 0 || early <= -time.Second {
			t.Errorf("%v: %s, want %s (%v too early, %v)", c.until, got, c.want, early, err)
		}
	}
	if got := listfile.UntilText(time.Time{}); got != "" {
		t.Errorf("no end is %s", got)
	}
}
