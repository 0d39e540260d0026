package wire

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"spamgate/internal/text"
)

// TestPaths reads every form of a path and parameters that is taken or refused
// from testdata/paths.tsv.
func TestPaths(t *testing.T) {
	rows := tsv(t, "testdata/paths.tsv", 3)
	for _, row := range rows {
		verb, arg, want := row[0], unescape(t, row[1]), row[2]
		cmd, reply := parseCommand(strings.TrimSuffix(verb, "+")+" "+arg, termsOf(verb))
		if want[0] >= '0' && want[0] <= '9' && strings.Contains(want, " ") {
			if !strings.HasPrefix(reply.String(), want) {
				t.Errorf("%s %q: got %q, reply %q; want a reply %q", verb, arg, cmd.Path, reply, want)
			}
			continue
		}
		if want == "-" {
			want = ""
		}
		if !reply.IsZero() || cmd.Path.String() != want {
			t.Errorf("%s %q: got %q, reply %q; want %q", verb, arg, cmd.Path, reply, want)
		}
	}
}

// termsOf returns the terms of a row of paths.tsv: with '+' all, for RCPT inside a
// transaction with SMTPUTF8.
func termsOf(verb string) terms {
	if strings.HasSuffix(verb, "+") {
		return terms{offered: ^extension(0), utf8: verb == "RCPT+"}
	}
	return terms{offered: extSize | ext8BitMIME}
}

func TestPathParts(t *testing.T) {
	for _, tt := range []struct{ arg, local, domain string }{
		{"<user@example.com>", "user", "example.com"},
		{`<"a@b"@example.com.>`, `"a@b"`, "example.com."},
		{"<user@[192.0.2.1]>", "user", "[192.0.2.1]"},
		{"<postmaster>", "postmaster", ""},
		{"<>", "", ""},
	} {
		p, rest, err := parsePath(tt.arg)
		if err != nil || rest != "" || p.LocalPart() != tt.local || p.Domain() != tt.domain {
			t.Errorf("%s: %q at %q, rest %q, %v", tt.arg, p.LocalPart(), p.Domain(), rest, err)
		}
	}
}

// FuzzCommand looks for commands that pass and could be read differently after the gate.
func FuzzCommand(f *testing.F) {
	data, err := os.ReadFile("testdata/paths.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(line, "\t"); len(fields) == 3 {
			f.Add(strings.TrimSuffix(fields[0], "+") + " " + unescape(f, fields[1]))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, terms := range []terms{termsOf("MAIL"), termsOf("MAIL+"), termsOf("RCPT+")} {
			if cmd, reply := parseCommand(line, terms); reply.IsZero() {
				checkCommand(t, line, cmd, terms)
			} else if reply.Positive() {
				t.Errorf("%q is answered with %q", line, reply)
			}
		}
	})
}

// checkCommand checks what was made of a line that passes.
func checkCommand(t *testing.T, line string, cmd Command, terms terms) {
	out := cmd.canonical()
	if strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\r\n") || strings.Count(out, "\r") != 1 || !text.IsASCII(out) {
		t.Errorf("%q becomes %q", line, out)
	}
	beyond := cmd.UTF8 || terms.utf8
	for _, param := range cmd.Params {
		for _, r := range param {
			if r <= ' ' || r == 0x7f || r >= 0x80 && (!terms.utf8 || !unicode.IsPrint(r)) {
				t.Fatalf("%q: parameter %q holds %U", line, param, r)
			}
		}
		if !strings.Contains(line, param) {
			t.Errorf("%q: parameter %q is not as it came", line, param)
		}
	}
	addr := cmd.Path.String()
	if !utf8.ValidString(addr) {
		t.Fatalf("%q: path %q", line, addr)
	}
	for _, r := range addr {
		if r < ' ' || r == 0x7f || r >= 0x80 && (!beyond || !unicode.IsPrint(r)) {
			t.Fatalf("%q: path %q holds %U", line, addr, r)
		}
	}
	if addr == "" {
		return
	}
	again, rest, err := parsePath("<" + addr + ">")
	if err != nil || rest != "" || again != cmd.Path {
		t.Errorf("%q: path %q is read again as %q, %q, %v", line, addr, again, rest, err)
	}
}

// tsv reads a table of tab-separated columns; lines that begin with '#' are
// comments.
func tsv(t testing.TB, file string, columns int) [][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != columns {
			t.Fatalf("%s:%d: %d columns, want %d", file, i+1, len(fields), columns)
		}
		rows = append(rows, fields)
	}
	if len(rows) == 0 {
		t.Fatalf("%s holds no cases", file)
	}
	return rows
}

// unescape puts bytes for \xHH and leaves other backslashes alone.
func unescape(t testing.TB, s string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			v, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteByte(byte(v))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
