package managed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// file returns the text of a list.
func file(t testing.TB, e *Editor, list string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.config().State.Dir, Dir, list+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReplace replaces the content of a list. The changed entries have records, which can be
// undone one by one.
func TestReplace(t *testing.T) {
	e, ctx := offline(t), context.Background()
	replace := func(text, base string) error {
		_, err := e.Replace(ctx, ann, "blocked", Replacement{Command: "import", What: "added a file", Base: base, Content: strings.NewReader(text)}, Options{})
		return err
	}
	const first = "# ours\na.example # one\nb.example # two\nc.example\n"
	if err := replace(first, sumOf(file(t, e, "blocked"))); err != nil {
		t.Fatal(err)
	}
	const second = "# ours\na.example # one\nb.example # three\nd.example\nd.example # again\n"
	if err := replace(second, sumOf("another")); !errors.Is(err, ErrConflict) || file(t, e, "blocked") != first {
		t.Errorf("over another content: %v", err)
	}
	if err := replace(second, sumOf(first)); err != nil {
		t.Fatal(err)
	}
	log := e.changes(t, ChangesQuery{List: "blocked", Limit: 4})
	var got []string
	for _, c := range slices.Backward(log) {
		got = append(got, fmt.Sprintf("%s %s: %q > %q", c.Command, c.What, c.Before, c.After))
	}
	want := []string{
		`import added a file: [] > []`,
		`import updated b.example: ["b.example # two"] > ["b.example # three"]`,
		`import added d.example: [] > ["d.example" "d.example # again"]`,
		`import removed c.example: ["c.example"] > []`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range log[:3] {
		if _, err := e.Undo(ctx, ann, c.ID, Options{}); err != nil {
			t.Errorf("undoing %s: %v", c.What, err)
		}
	}
	if got := file(t, e, "blocked"); got != "# ours\na.example # one\nb.example # two\nc.example\n" {
		t.Errorf("after the undos the list is %q", got)
	}
	if err := replace("", ""); err != nil || file(t, e, "blocked") != listedit.NoEntries+"\n" {
		t.Errorf("%q, %v", file(t, e, "blocked"), err)
	}
	var many strings.Builder
	for i := range maxEdits + 1 {
		fmt.Fprintf(&many, "m%d.example\n", i)
	}
	if err := replace(many.String(), ""); err != nil {
		t.Fatal(err)
	}
	if last := e.changes(t, ChangesQuery{Limit: 1})[0]; last.ID == "" || last.CommandID != last.ID || last.Entry != "" || last.What != "added a file" {
		t.Errorf("a large change is %+v", last)
	}
	same := file(t, e, "blocked")
	if r, err := e.Replace(ctx, ann, "blocked", Replacement{Command: "edit", Content: strings.NewReader(same)}, Options{}); err != nil || r.Changed {
		t.Errorf("with the same content: %+v, %v", r, err)
	}
	if _, err := e.spool(strings.NewReader("12345"), 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too much: %v", err)
	}
}

// FuzzDifference compares what is found to have changed between two texts with a comparison of
// all their entries.
func FuzzDifference(f *testing.F) {
	for _, pair := range [][2]string{
		{"", "a.example\n"}, {"a.example\nb.example\n", "b.example\n"}, {"a.example", "a.example # r\n"}, {"a.example\n", "a.example.example\n"},
		{"a.example\nab.example\n", "ab.example\n"}, {"# c\r\na.example\r\n", "# d\r\na.example # x\r\n"}, {"\ufeffa.example\n", "a.example\n"}, {"x\n\ny", "x\ny"},
	} {
		f.Add(pair[0], pair[1], 3)
	}
	f.Fuzz(func(t *testing.T, before, after string, piece int) {
		var out strings.Builder
		d := &difference{old: strings.NewReader(before), w: &out}
		for rest := []byte(after); len(rest) > 0; {
			n := min(len(rest), max(1, piece))
			if _, err := d.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		changed, same, err := d.end()
		if err != nil || same != (before == after) || out.String() != after {
			t.Fatalf("same %t, %v; %q", same, err, out.String())
		}
		if changed == nil {
			return
		}
		names := func(text string) map[string]EntryChange {
			found, _, err := linesByEntry([]byte(text), listfile.Options{})
			if err != nil {
				t.Skip(err)
			}
			return found
		}
		was, current := names(before), names(after)
		partWas, partNow := names(string(changed.before)), names(string(changed.after))
		for name := range was {
			if current[name].After == nil && partWas[name].After == nil {
				t.Errorf("%q to %q: %s is gone, and not in %q", before, after, name, changed.before)
			}
		}
		for name := range current {
			if was[name].After == nil && partNow[name].After == nil {
				t.Errorf("%q to %q: %s is new, and not in %q", before, after, name, changed.after)
			}
		}
	})
}

// TestRollback puts versions of a list back, also when its file is gone.
func TestRollback(t *testing.T) {
	g, ctx := newGate(t), context.Background()
	add := func(name string) {
		t.Helper()
		if _, err := g.Add(ctx, ann, "blocked", []NewEntry{entry(name, "r")}, Options{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the version to be kept", func() bool {
			versions, err := g.Versions("blocked")
			return err == nil && len(versions) > 0 && versions[0].OnDisk
		})
	}
	add("a.example")
	add("b.example")
	versions, err := g.Versions("blocked")
	if err != nil || len(versions) < 2 || versions[0].Entries != 2 || versions[1].Entries != 1 {
		t.Fatalf("%+v, %v", versions, err)
	}
	if _, err := g.Rollback(ctx, ann, "blocked", versions[1].ID, Options{Why: "b is good"}); err != nil || g.action("x@b.example") != "accept" || g.action("x@a.example") != "reject" {
		t.Errorf("%v; %s", err, file(t, g.Editor, "blocked"))
	}
	log := g.changes(t, ChangesQuery{List: "blocked", Limit: 2})
	if log[0].What != "removed b.example" || log[0].ID == "" || log[1].What != "put version "+versions[1].ID+" back" || log[1].Command != "rollback" || log[1].Why != "b is good" {
		t.Errorf("changes %+v", log)
	}
	if err := os.Remove(filepath.Join(g.config.State.Dir, Dir, "blocked.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("c.example", "")}, Options{}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "lists rollback blocked") {
		t.Errorf("without the file: %v", err)
	}
	if g.action("x@a.example") != "reject" {
		t.Error("the last good version does not serve")
	}
	if err := Make(g.config); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(g.config.State.Dir, Dir, "blocked.txt")); err == nil {
		t.Error("a file is made although a version was served")
	}
	if r, err := g.Rollback(ctx, ann, "blocked", versions[0].ID, Options{}); err != nil || r.NotLive != "" || g.action("x@b.example") != "reject" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, id := range []string{"", "..", "20010101T000000.000Z-0123456789ab"} {
		if _, err := g.Rollback(ctx, ann, "blocked", id, Options{}); !errors.Is(err, ErrNoVersion) {
			t.Errorf("version %q: %v", id, err)
		}
	}
}

// TestRollbackOfHeld puts a version back while the gate holds what is on disk, as the error of another
// edit says.
func TestRollbackOfHeld(t *testing.T) {
	g, ctx := newGate(t), context.Background()
	path := filepath.Join(g.config.State.Dir, Dir, "blocked.txt")
	many := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "m%d.example\n", i)
		}
		return text.String()
	}
	kept := func(entries int) (id string) {
		waitFor(t, "the version to be kept", func() bool {
			versions, err := g.Versions("blocked")
			i := slices.IndexFunc(versions, func(v Version) bool { return v.Entries == entries })
			if err != nil || i < 0 {
				return false
			}
			id = versions[i].ID
			return true
		})
		return id
	}
	for _, n := range []int{2000, 1500} {
		if r, err := g.Replace(ctx, ann, "blocked", Replacement{Command: "import", Content: strings.NewReader(many(n))}, Options{}); err != nil || r.NotLive != "" {
			t.Fatalf("%+v, %v", r, err)
		}
		kept(n)
	}
	for _, c := range []struct {
		onDisk string
		back   int
		want   string // of an entry that only the older version has
	}{{"", 1500, "accept"}, {"", 2000, "reject"}, {"b.example\n", 1500, "accept"}, {"b.example\n", 2000, "reject"}} {
		if err := os.WriteFile(path, []byte(c.onDisk), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = g.store.Rescan(ctx) // it reports what is held
		if (&edit{Editor: g.Editor, list: mustList(g, "blocked")}).held() == nil {
			t.Fatalf("%q is not held", c.onDisk)
		}
		r, err := g.Rollback(ctx, ann, "blocked", kept(c.back), Options{})
		if got := g.action("x@m1700.example"); err != nil || r.NotLive != "" || got != c.want {
			t.Errorf("%q, back to %d entries: %s, %+v, %v", c.onDisk, c.back, got, r, err)
		}
	}
}

// mustList returns a managed list.
func mustList(g *gate, name string) *listfiles.List {
	g.Helper()
	l, err := g.list(name)
	if err != nil {
		g.Fatal(err)
	}
	return l
}

// TestShrinkIsWanted: an edit that takes away most of a list counts at once.
func TestShrinkIsWanted(t *testing.T) {
	g, ctx := newGate(t), context.Background()
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "m%d.example\n", i)
	}
	for _, content := range []string{text.String(), "a.example\n"} {
		r, err := g.Replace(ctx, ann, "blocked", Replacement{Command: "import", Content: strings.NewReader(content)}, Options{})
		if err != nil || r.NotLive != "" || r.Generation == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if g.action("x@m7.example") != "accept" || g.action("x@a.example") != "reject" {
		t.Error("the edit does not count")
	}
}

// TestPinned: an edit of a pinned list is made, and says that it does not count.
func TestPinned(t *testing.T) {
	g, ctx := newGate(t), context.Background()
	if _, err := g.store.Pin(ctx, "blocked", pinNow(g)); err != nil {
		t.Fatal(err)
	}
	r, err := g.Add(ctx, ann, "blocked", []NewEntry{entry("a.example", "")}, Options{})
	if err != nil || !r.Changed || !r.Pinned || r.NotLive == "" || r.Generation != 0 || g.action("x@a.example") != "accept" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestChangesPages reads the audit log by pages, with records of other versions and rotated
// files between.
func TestChangesPages(t *testing.T) {
	e, ctx := offline(t), context.Background()
	dir := e.config().State.Dir
	old := `{"time":"2026-01-02T10:00:00Z","uid":0,"user":"root","sudo_user":"alice","command":"add","list":"file","what":"added old.example"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "audit.log.1"), []byte(strings.Repeat(old, 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "audit.log"), []byte("nonsense\n"+`{"time":"2026-`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := e.Add(ctx, ann, "blocked", []NewEntry{entry(fmt.Sprintf("e%d.example", i), "")}, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	q := ChangesQuery{Limit: 2}
	for range 10 {
		page, err := e.Changes(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Changes {
			got = append(got, c.By+" "+c.What)
		}
		if q.Before = page.Next; q.Before == "" {
			break
		}
	}
	want := []string{
		"ann added e4.example", "ann added e3.example", "ann added e2.example", "ann added e1.example", "ann added e0.example",
		"alice added old.example", "alice added old.example", "alice added old.example",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for name, c := range map[string]struct {
		q    ChangesQuery
		want int
	}{
		"by account": {ChangesQuery{By: "ann"}, 5}, "by the user before sudo": {ChangesQuery{By: "alice"}, 3}, "by somebody": {ChangesQuery{By: "eve"}, 0},
		"of a list": {ChangesQuery{List: "file"}, 3}, "of an entry": {ChangesQuery{Entry: "E3.example"}, 1}, "lately": {ChangesQuery{Since: inAnHour.AddDate(0, -1, 0)}, 5},
	} {
		if got := len(e.changes(t, c.q)); got != c.want {
			t.Errorf("%s: %d changes, want %d", name, got, c.want)
		}
	}
	if _, err := e.Changes(ctx, ChangesQuery{Entry: "a b c"}); !errors.Is(err, ErrEntry) {
		t.Error(err)
	}
}

// TestDefault finds the lists for entries that name none.
func TestDefault(t *testing.T) {
	e := offline(t)
	for _, c := range []struct {
		kind         string
		perRecipient bool
		want         string
	}{{"block", false, "blocked"}, {"allow", false, "allowed"}, {"block", true, ""}, {"allow", true, ""}} {
		if l, ok := e.Default(c.kind, c.perRecipient); l.Name != c.want || ok != (c.want != "") {
			t.Errorf("%s, %t: %q", c.kind, c.perRecipient, l.Name)
		}
	}
}

// TestNotMade: a record whose change could not be made is taken back, and what it would have
// undone is not undone.
func TestNotMade(t *testing.T) {
	e, ctx := offline(t), context.Background()
	r, err := e.Add(ctx, ann, "blocked", []NewEntry{entry("a.example", "")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	added := r.Entries[0].Change
	log := e.log()
	for _, record := range []listedit.Record{
		{Time: inAnHour, Command: "undo", List: "blocked", What: "undone", By: "ann", Edit: listedit.Edit{ID: "aaaaaaaaaaaaaaaa", Entry: "a.example", Undoes: added}},
		{Time: inAnHour, Command: listedit.Failed, List: "blocked", What: "not made", By: "ann", Edit: listedit.Edit{Undoes: "aaaaaaaaaaaaaaaa"}},
	} {
		if err := log.Append(&record); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := e.Change(ctx, added); err != nil || c.Undone != nil {
		t.Errorf("%+v, %v", c.Undone, err)
	}
	if _, err := e.Undo(ctx, ann, "aaaaaaaaaaaaaaaa", Options{}); !errors.Is(err, ErrNoChange) {
		t.Error(err)
	}
	if _, err := e.Undo(ctx, ann, added, Options{}); err != nil {
		t.Error(err)
	}
}

// TestReloadKeepsState: a configuration with another state directory does not move managed
// lists while the gate runs.
func TestReloadKeepsState(t *testing.T) {
	c := loadConfig(t)
	moved := strings.Replace(testConfig, `"state"`, `"other"`, 1)
	other, err := config.Parse(c.File, []byte(moved))
	if err != nil {
		t.Fatal(err)
	}
	other.KeepState(c)
	if other.Lists[0].Path != c.Lists[0].Path || other.Lists[0].Copy != c.Lists[0].Copy || other.Lists[0].StateDir() != c.State.Dir {
		t.Errorf("%s, want %s", other.Lists[0].Copy, c.Lists[0].Copy)
	}
}
