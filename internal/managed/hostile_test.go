package managed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"

	"spamgate/blocklist/listfile"
	"spamgate/internal/listfiles"
)

// hostile are texts that would change the meaning of a line, if they could.
var hostile = []string{
	"bought addresses", "x\nevil.example", "x\r\nevil.example", "# x", "## x", "x ## y", "x#y", "x # y", "until=2001-01-01", "x until=2099-01-01 y", "until=nonsense", "UNTIL=2001-01-01",
	"\u202eexample.evil", "\u200f\u200e", "x\u2028evil.example", "x\u0085evil.example", "\ufeffx", "\x00", "x\x1b[2Jy", "\t x \t", "\xff\xfe", "ü", "=cmd|' /C calc'!A0", "<script>", `"`, `\`, "", strings.Repeat("x", 10_000), strings.Repeat("ü", 2040),
}

// FuzzAdd adds an entry with hostile texts to a list that has others. Either it is refused and
// nothing has changed, or the list has it, with the same reason and note, beside what it had.
func FuzzAdd(f *testing.F) {
	for _, s := range hostile {
		f.Add("spam.example", "", s, "")
		f.Add("spam.example", "ann@example.net", "bots", s)
		f.Add(s, "", "bots", "")
		f.Add("spam.example", s, "", "")
	}
	f.Add("!spam.example", "", "r", "n")
	f.Add(`"a b"@x.example`, `"#c"@example.net`, "r", "n")
	e := offline(f)
	ctx := context.Background()
	known := NewEntry{Name: Name{Entry: "known.example", For: "eve@example.net"}, Reason: "known"}
	f.Fuzz(func(t *testing.T, text, recipient, reason, note string) {
		list := "blocked"
		known := known
		if recipient != "" {
			list = "personal"
		} else {
			known.For = ""
		}
		empty(t, e, list)
		if _, err := e.Add(ctx, ann, list, []NewEntry{known}, Options{}); err != nil {
			t.Fatal(err)
		}
		before := e.linesOf(t, list)
		r, err := e.Add(ctx, ann, list, []NewEntry{{Name: Name{text, recipient}, Reason: reason, Note: note}}, Options{})
		after := read(t, e, list)
		if err != nil {
			if !errors.Is(err, ErrEntry) && !errors.Is(err, ErrProtected) {
				t.Errorf("%v", err)
			}
			if len(after) != 1 || len(before) != 1 {
				t.Errorf("refused, and the list is %+v", after)
			}
			return
		}
		if r.Entries[0].Entry == "known.example" && r.Entries[0].For == known.For {
			return // it was updated
		}
		if len(after) != 2 || after[0].Key != "known.example" || after[0].Reason != "known" || after[0].Until != 0 {
			t.Fatalf("the list is %+v", after)
		}
		got := after[1]
		if got.Reason != strings.TrimSpace(reason) || got.Note != strings.TrimSpace(note) || got.Until != 0 {
			t.Errorf("the reason %q is %q, the note %q is %q, until %d", reason, got.Reason, note, got.Note, got.Until)
		}
		if strings.ContainsFunc(got.Reason+got.Note, unicode.IsControl) {
			t.Errorf("control characters in %q or %q", got.Reason, got.Note)
		}
		if recipient != "" && (got.For == "" || got.For != r.Entries[0].For) {
			t.Errorf("for %q: %q", recipient, got.For)
		}
		if _, err := e.Undo(ctx, ann, r.Entries[0].Change, Options{}); err != nil {
			t.Errorf("undo: %v", err)
		}
		if left := read(t, e, list); len(left) != 1 {
			t.Errorf("after the undo the list is %+v", left)
		}
	})
}

// empty removes all entries of a list.
func empty(t *testing.T, e *Editor, list string) {
	t.Helper()
	if _, err := e.Replace(context.Background(), ann, list, Replacement{Command: "edit", Content: strings.NewReader("")}, Options{}); err != nil {
		t.Fatal(err)
	}
}

// read returns the entries of a list as the gate reads it. An invalid line fails the test.
func read(t *testing.T, e *Editor, list string) (entries []listfile.Entry) {
	t.Helper()
	l, err := e.list(list)
	if err != nil {
		t.Fatal(err)
	}
	content, err := e.Open(list)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	r := listfile.NewReader(content, l.Options)
	r.Problem = func(p listfile.Problem) { t.Errorf("invalid line: %v", p) }
	for x, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, x)
	}
	return entries
}

// written returns what the changes in the audit log of an entry say of its lines.
func written(c Change) string { return listfiles.EntryInfo{For: c.For, Entry: c.Entry}.Text() }
