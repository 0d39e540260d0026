package header

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var asked = []string{"From", "Sender", "Reply-To"}

// sectionCase is one block of testdata/cases.txt.
type sectionCase struct {
	name, why string
	line      int
	section   []byte
	want      []string
}

var escape = regexp.MustCompile(`\\x[0-9a-f]{2}`)

func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(x string) string {
		b, _ := strconv.ParseUint(x[2:], 16, 8)
		return string([]byte{byte(b)})
	})
}

// readCases reads testdata/cases.txt, whose head describes its format.
func readCases(t testing.TB) []sectionCase {
	t.Helper()
	f, err := os.Open("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []sectionCase
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		kind, text, _ := strings.Cut(line, " ")
		if kind == "case" {
			cases = append(cases, sectionCase{name: text, line: n})
			continue
		}
		if len(cases) == 0 {
			t.Fatalf("cases.txt:%d: no case yet", n)
		}
		c := &cases[len(cases)-1]
		switch kind {
		case "why":
			c.why = strings.TrimSpace(text)
		case "|":
			c.section = append(append(c.section, unescape(text)...), "\r\n"...)
		case ">":
			c.want = append(c.want, unescape(text))
		default:
			t.Fatalf("cases.txt:%d: %q is no kind of line", n, kind)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// show returns a result in the form of the expected lines.
func show(r Result) []string {
	var lines []string
	for _, s := range r.Senders {
		lines = append(lines, s.Field+" "+s.Address)
	}
	for _, f := range r.Forms {
		kind := "(form)"
		if f.Beside {
			kind = "(beside)"
		}
		lines = append(lines, f.Field+" "+kind+" "+f.Text)
	}
	for _, f := range r.Empty {
		lines = append(lines, f+" (empty)")
	}
	return lines
}

func TestSendersCases(t *testing.T) {
	cases := readCases(t)
	if len(cases) < 60 {
		t.Fatalf("%d cases: the file was not read", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.why == "" {
				t.Errorf("cases.txt:%d: no reason given", c.line)
			}
			if got := show(Senders(c.section, asked)); !slices.Equal(got, c.want) {
				t.Errorf("cases.txt:%d (%s):\n%q\n got %q\nwant %q", c.line, c.why, c.section, got, c.want)
			}
		})
	}
}
