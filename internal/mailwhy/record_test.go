package mailwhy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestParseLine has lines of the gate, and lines that are not: cut off, of other programs, or
// made by strangers to look like the gate's.
func TestParseLine(t *testing.T) {
	const (
		head  = `time=2026-11-22T15:39:26.839Z level=INFO msg=refused id=2ZFPDJSVUUAR`
		other = `time=2026-11-22T15:40:00.000Z level=INFO msg=accepted id=AAAAAAAAAAAA`
		js    = `{"time":"2026-11-22T15:39:26.839Z","level":"INFO","msg":"refused","id":"2ZFPDJSVUUAR","generation":1}`
	)
	for _, test := range []struct{ line, id string }{
		{head, "2ZFPDJSVUUAR"},
		{head + "\r\n", "2ZFPDJSVUUAR"},
		{"\x00\x00\x00" + head, "2ZFPDJSVUUAR"}, // after a loss of power
		{js, "2ZFPDJSVUUAR"},
		{"Nov  2 15:39:26 mx1 spamgate[77]: " + head, "2ZFPDJSVUUAR"},
		{"<22>Nov 22 15:39:26 spamgate[77]: " + head, "2ZFPDJSVUUAR"},
		{"2026-11-22T15:39:26.839+01:00 mx1.example spamgate[77]: " + js, "2ZFPDJSVUUAR"},
		{head + ` helo="a b" reply="550 \"x\" y=z"`, "2ZFPDJSVUUAR"},

		// Cut off, and another line in it.
		{head + other, "AAAAAAAAAAAA"},
		{head + " cli" + other, "AAAAAAAAAAAA"},
		{head + " " + other, "AAAAAAAAAAAA"},
		{js[:40] + strings.Replace(js, "2ZFPDJSVUUAR", "BBBBBBBBBBBB", 1), "BBBBBBBBBBBB"},
		{js[:40], ""},
		{js[:len(js)-1], ""},
		{js + "x", ""},
		{head + ` helo="a b`, ""},
		{head + ` helo="a b` + other, ""},
		{head + ` helo="a b` + other + ` reply="250 ok"`, ""},
		{"id=2ZFPDJSVUUAR " + head, ""},
		{`time=2026-11-22T15:39:26.839Z level=INFO`, ""},
		{`time=yesterday level=INFO msg=refused id=2ZFPDJSVUUAR`, ""},

		// Of others.
		{"Nov 22 15:39:26 mx1 postfix/smtpd[77]: helo=<" + head + ">", ""},
		{"Nov 22 15:39:26 mx1 postfix/smtpd[77]: spamgate[77]: " + head, ""},
		{"Nov 22 15:39:26 mx1 spamgate-helper[77]: " + head, ""},
		{"x " + head, ""},
		{`{"time":1,"level":"INFO","msg":"refused"}`, ""},
		{`[1]`, ""},
		{"", ""},
		{"=", ""},
		{"time=", ""},
	} {
		r, ok := ParseLine([]byte(test.line))
		if ok != (test.id != "") || ok && r.Get("id") != test.id {
			t.Errorf("%q: %v, %+v", test.line, ok, r)
		}
	}
}

// TestHostileValues writes values that strangers may send with slog's handlers, as the gate does,
// and reads them again. No value becomes an attribute.
func TestHostileValues(t *testing.T) {
	for _, value := range []string{
		`x" id=AAAAAAAAAAAA msg="accepted`, "a\nb", "\x1b[2J", "x time=2026-11-22T15:40:00.000Z level=INFO msg=accepted",
		`{"time":"2026-11-22T15:40:00.000Z","level":"INFO","msg":"accepted"}`, `\`, `a\"b`, "é\u202e\u009b", "=", "time=", "",
	} {
		for _, handler := range []func(*bytes.Buffer) slog.Handler{
			func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var line bytes.Buffer
			slog.New(handler(&line)).Info("refused", "id", "2ZFPDJSVUUAR", "helo", value, "end", 7)
			r, ok := ParseLine(line.Bytes())
			if !ok || len(r.attrs) != 3 || r.Get("helo") != value || r.Get("end") != "7" || r.Msg != "refused" {
				t.Errorf("%q: %v, %+v", line.String(), ok, r)
			}
		}
	}
}

// FuzzParseLine checks that a parsed line survives being written and parsed again.
func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{
		`time=2026-11-22T15:39:26.839Z level=INFO msg=refused id=2ZFPDJSVUUAR helo="a b"`,
		`{"time":"2026-11-22T15:39:26.839Z","level":"INFO","msg":"refused","id":"2ZFPDJSVUUAR","n":1,"by":{"uid":0}}`,
		`Nov 22 15:39:26 mx1 spamgate[77]: time=2026-11-22T15:39:26.839Z level=INFO msg=x`,
		`time=2026-11-22T15:39:26.839Z level=INFO mstime=2026-11-22T15:39:26.839Z level=INFO msg="x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, ok := ParseLine(line)
		if !ok {
			return
		}
		if text := Explain(r); strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == 0x9b }) {
			t.Errorf("%q", text)
		}
		var again bytes.Buffer
		attrs := []any{}
		for _, a := range r.attrs {
			if a.key == "" || a.key == "msg" || a.key == "level" || strings.HasSuffix(a.key, "time") || strings.ContainsAny(a.key, "\" =\\") || !isPlain(a.key) {
				return // no key of the gate
			}
			attrs = append(attrs, a.key, a.value)
		}
		slog.New(slog.NewTextHandler(&again, nil)).Info(r.Msg, attrs...)
		r2, ok := ParseLine(again.Bytes())
		if !ok || r2.Msg != r.Msg || len(r2.attrs) != len(r.attrs) {
			t.Errorf("%q became %q: %v", line, again.String(), ok)
		}
	})
}

func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
