package term

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"a b", []string{"a b"}},
		{"aaaa bbbb cc", []string{"aaaa bbbb", "cc"}},
		{"aaa,bbb,ccc,ddd", []string{"aaa,bbb,", "ccc,ddd"}},
		{"éééééééééééé", []string{"éééééééééé", "éé"}},
		{"x aaaaaaaaaaaaaaaaaaaaa", []string{"x", "aaaaaaaaaa", "aaaaaaaaaa", "a"}},
	} {
		if got := Wrap(c.text, 10); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestPrintWrapped(t *testing.T) {
	words := strings.Repeat("abcdefghi ", 9) // of which seven or eight fit
	for _, c := range []struct{ label, text, want string }{
		{"* ", words, "* " + strings.Repeat("abcdefghi ", 7)[:69] + "\n  abcdefghi abcdefghi\n"},
		{"a label of more than 20 bytes: ", words, "a label of more than 20 bytes: abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi\n    abcdefghi abcdefghi abcdefghi abcdefghi\n"},
		{"label: ", "", "label:\n"},
	} {
		var b bytes.Buffer
		if PrintWrapped(&b, c.label, c.text); b.String() != c.want {
			t.Errorf("%q: %q, want %q", c.label, b.String(), c.want)
		}
	}
	var b bytes.Buffer // a word that is too long stays whole
	if PrintWrapped(&b, "", "a "+strings.Repeat("x", 90)); b.String() != "a\n"+strings.Repeat("x", 90)+"\n" {
		t.Errorf("a long word: %q", b.String())
	}
	b.Reset()
	PrintParts(&b, "label", []string{"one part", strings.Repeat("x", 57), "two", "three"})
	if want := "  label      one part,\n               " + strings.Repeat("x", 57) + ", two,\n               three\n"; b.String() != want {
		t.Errorf("parts: %q, want %q", b.String(), want)
	}
}

// TestTable wants the same table in ever fewer columns.
func TestTable(t *testing.T) {
	table := &Table{Indent: " ", Columns: []Column{{Title: "name"}, {Title: "kind", Left: true}, {Title: "n"}, {Title: "more", Spare: true}}}
	table.Add("first", "a", "1", "x")
	table.Add("the second", "bb", "10,000", "")
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, " name        kind       n  more\n first       a          1     x\n the second  bb    10,000\n"},
		{31, " name        kind       n  more\n first       a          1     x\n the second  bb    10,000\n"},
		{30, " name        kind       n\n first       a          1\n the second  bb    10,000\n"},
		{24, " name\n   kind       n\n first\n   a          1\n the second\n   bb    10,000\n"},
		{12, " first\n   kind a; n\n   1\n the second\n   kind bb;\n   n 10,000\n"},
	} {
		var b bytes.Buffer
		if table.Write(&b, c.width); b.String() != c.want {
			t.Errorf("width %d:\n%s\nwant\n%s", c.width, b.String(), c.want)
		}
		if got := table.Fits(c.width); got != (c.width == 31) {
			t.Errorf("width %d: fits %t", c.width, got)
		}
	}
}
