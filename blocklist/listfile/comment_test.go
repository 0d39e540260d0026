package listfile

import (
	"strings"
	"testing"
)

func TestCutComment(t *testing.T) {
	for line, want := range map[string][2]string{
		"example.com":                   {"example.com", ""},
		"  example.com\t# reason ## no": {"  example.com\t", "# reason ## no"},
		"example.com#no":                {"example.com#no", ""},
		`"a # b"@example.com # reason`:  {`"a # b"@example.com `, "# reason"},
		"":                              {"", ""},
	} {
		if entry, comment := CutComment(line); entry != want[0] || comment != want[1] {
			t.Errorf("%q: %q and %q, want %q", line, entry, comment, want)
		}
	}
}

// FuzzParseLine: a line is read by itself as it is in a list.
func FuzzParseLine(f *testing.F) {
	for _, line := range []string{
		"example.com", " .example.com  # reason ## note", "!user@example.com # until=2001-01-01 over", "# comment", "",
		"com", "two words", "\ufeffexample.com", "example.com\r", "a\x00b", "*@example.com until=2099-12-31", strings.Repeat("a", MaxLine+1),
	} {
		f.Add(line, false, false)
		f.Add(line, true, true)
	}
	f.Fuzz(func(t *testing.T, line string, exact, allow bool) {
		if strings.Contains(line, "\n") || strings.HasPrefix(line, "\x1f\x8b") || strings.HasPrefix(line, "\x28\xb5\x2f\xfd") {
			return // several lines, or packed
		}
		var want Entry
		found := false
		o := Options{Exact: exact, Allow: allow}
		dated := o
		dated.Now = 1
		_, err := read(strings.NewReader(line), dated, func(e Entry) error {
			want, found = e, true
			want.Line = 0
			return nil
		}, nil)
		got, ok := ParseLine(line, o)
		if ok != (found && err == nil) || ok && got != want {
			t.Errorf("%q: %+v, %v; a list has %+v, %v, %v", line, got, ok, want, found, err)
		}
	})
}
