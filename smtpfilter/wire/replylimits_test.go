package wire

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestReplyForClient: what clients are given of a reply, and that it is bounded.
func TestReplyForClient(t *testing.T) {
	lines := func(n int, line string) []string { return strings.Split(strings.Repeat(line+"\n", n-1)+line, "\n") }
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string // nil: as they are
		utf8  []string // in a transaction with SMTPUTF8; nil: as want
	}{
		{name: "plain", lines: []string{"5.1.1 <a@example.net> unknown", "5.1.1 ask\tyour admin ~", ""}},
		{name: "longest line", lines: []string{x(506)}},
		{name: "line too long", lines: []string{x(507)}, want: []string{x(500) + " [...]"}},
		{name: "most lines", lines: lines(32, "5.1.1 no")},
		{name: "too many lines", lines: lines(33, "5.1.1 no"), want: append(lines(31, "5.1.1 no"), "5.1.1 no [...]")},
		{name: "too many empty lines", lines: lines(256, ""), want: append(lines(31, ""), " [...]")},
		{name: "most bytes", lines: append(lines(7, x(506)), x(506))},
		{name: "too many bytes", lines: append(lines(8, x(506)), ""), want: append(lines(6, x(506)), x(500)+" [...]")},
		{name: "as long as may be read", lines: lines(255, x(4000)), want: append(lines(6, x(500)+" [...]"), x(500)+" [...]")},
		{name: "escape sequence", lines: []string{"\x1b[31mred\x1b[0m\a\b\x7f\x00"}, want: []string{"?[31mred?[0m????"}},
		{name: "line breaks", lines: []string{"a\r\n250 b"}, want: []string{"a??250 b"}},
		{name: "Latin-1", lines: []string{"f\xfcr"}, want: []string{"f?r"}},
		{name: "UTF-8", lines: []string{"<änne@bücher.example> 不明"}, want: []string{"<?nne@b?cher.example> ??"}, utf8: []string{"<änne@bücher.example> 不明"}},
		{name: "C1 control, turned text, half a character, no character", lines: []string{"\u009b31m\u202egpj.exe\xe4\xb8\ufffd"},
			want: []string{"?31m?gpj.exe???"}},
		{name: "long UTF-8", lines: []string{x(499) + strings.Repeat("ü", 10)}, want: []string{x(499) + "? [...]"}, utf8: []string{x(499) + " [...]"}},
	} {
		want := tt.want
		if want == nil {
			want = tt.lines
		}
		for _, withUTF8 := range []bool{false, true} {
			if withUTF8 && tt.utf8 != nil {
				want = tt.utf8
			}
			got := NewReply(550, tt.lines...).forClient(withUTF8)
			if strings.Join(got.Lines, "\n") != strings.Join(want, "\n") || got.Code != 550 {
				t.Errorf("%s, UTF-8 %v: %d lines: %q", tt.name, withUTF8, len(got.Lines), got.Lines)
			}
			out := got.Append(nil)
			if len(out) > MaxReplyBytes || len(got.Lines) > MaxReplyLines || !utf8.Valid(out) {
				t.Errorf("%s: %d bytes in %d lines", tt.name, len(out), len(got.Lines))
			}
		}
	}
}

// TestReplyString: the text for logs is at most 1 KiB, and ends with a whole word.
func TestReplyString(t *testing.T) {
	for _, tt := range []struct{ reply, want string }{
		{Reply{}.String(), ""},
		{NewReply(250).String(), "250 "},
		{NewReply(550, "5.1.1 no", "5.1.1 none").String(), "550 5.1.1 no / 5.1.1 none"},
		{NewReply(550, strings.Repeat("x", 1020)).String(), "550 " + strings.Repeat("x", 1020)},
		{NewReply(550, strings.Repeat("x", 1021)).String(), "550 [...]"},
		{NewReply(550, strings.Repeat("<user@example.net> ", 100)).String(), "550 " + strings.Repeat("<user@example.net> ", 53) + "[...]"},
		{NewReply(550, strings.Repeat("no ", 170), strings.Repeat("x", 4000), "y").String(), "550 " + strings.Repeat("no ", 170) + "[...]"},
	} {
		if tt.reply != tt.want || len(tt.reply) > 1024 {
			t.Errorf("%d bytes: %q, want %q", len(tt.reply), tt.reply, tt.want)
		}
	}
}

// TestCodesOnly: of a reply to AUTH a log shows codes.
func TestCodesOnly(t *testing.T) {
	for _, tt := range []struct {
		reply Reply
		want  string
	}{
		{Reply{}, ""},
		{NewReply(235), "235 "},
		{NewReply(235, "2.7.0 welcome ann", "2.7.0 x"), "235 2.7.0"},
		{NewReply(535, "5.7.8"), "535 5.7.8"},
		{NewReply(535, "no"), "535 "},
		{NewReply(535, "2.7.0 class of another code"), "535 "},
		{NewReply(535, "5.7 8"), "535 "},
		{NewReply(535, "5.7.8.9"), "535 "},
		{NewReply(535, "5.secret.8"), "535 "},
		{NewReply(535, "5.7.1234"), "535 "},
		{NewReply(535, "5..8"), "535 "},
	} {
		if got := tt.reply.CodesOnly().String(); got != tt.want {
			t.Errorf("%v: %q", tt.reply, got)
		}
	}
}

// TestReplyOfTwoCodes: it is not known which of them counts (RFC 5321 section 4.2.1).
func TestReplyOfTwoCodes(t *testing.T) {
	var r Reply
	if last, err := r.AppendLine([]byte("250-a\r\n")); last || err != nil {
		t.Fatal(last, err)
	}
	if _, err := r.AppendLine([]byte("550 b\r\n")); !errors.Is(err, ErrBadReply) {
		t.Errorf("%v", err)
	}
}
