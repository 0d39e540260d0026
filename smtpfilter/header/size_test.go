package header

import (
	"bytes"
	"strings"
	"testing"
)

// TestLongest wants the longest of the named fields and of their lines, whatever the line ends
// are: a field reaches from its name to the line before the next field.
func TestLongest(t *testing.T) {
	x := strings.Repeat("x", 40)
	for _, c := range []struct {
		section     string
		field, line Size
	}{
		{"", Size{}, Size{}},
		{"Subject: " + x + "\r\n", Size{}, Size{}},
		{"From: a@b.example\r\nSubject: " + x + "\r\n", Size{"From", 17}, Size{"From", 17}},
		{"From: a@b.example", Size{"From", 17}, Size{"From", 17}},
		{"Sender:\r\nFrom:\r\n", Size{"Sender", 7}, Size{"Sender", 7}},
		{"FROM \t: a@b.example\r\n", Size{"From", 19}, Size{"From", 19}},
		{"From: a@b.example\r\nReply-To: a@b.example\r\nFrom: abc@b.example\r\n", Size{"Reply-To", 21}, Size{"Reply-To", 21}},
		{"From: a\r\nFrom: a@b.example\r\nFrom: b\r\n", Size{"From", 17}, Size{"From", 17}},

		{"From: a\r\n @b\r\n\t.example\r\nSubject: x\r\n", Size{"From", 7 + 2 + 3 + 2 + 9}, Size{"From", 9}},
		{"From: a\r\n \r\n\r\nSubject: x\r\n", Size{"From", 7 + 2 + 1}, Size{"From", 7}},
		{"From: a\r\n \t \r\n: b", Size{"From", 7 + 2 + 3}, Size{"From", 7}},
		{" From: a@b.example\r\n", Size{"From", 18}, Size{"From", 18}},
		{"From\r\n \r\n : a@b.example\r\n", Size{"From", 4 + 2 + 1 + 2 + 14}, Size{"From", 14}},
		{"From" + strings.Repeat(" ", 30) + "\r\n : a@b.example\r\n", Size{"From", 34 + 2 + 14}, Size{"From", 34}},

		{"From: a\r\n" + x + "\r\nSubject: x\r\n", Size{"From", 7 + 2 + 40}, Size{"From", 40}},
		{"From: a\r\n" + x + "\r\n " + x + "\r\nmore\r\nSubject: x\r\n", Size{"From", 7 + 2 + 40 + 2 + 41 + 2 + 4}, Size{"From", 41}},
		{"From: a\r\n\r\n" + x + "\r\n", Size{"From", 7}, Size{"From", 7}},
		{"Subject: a\r\n" + x + "\r\nFrom: a\r\n", Size{"From", 7}, Size{"From", 7}},
		{x + "\r\nFrom: a\r\n", Size{"From", 7}, Size{"From", 7}},
		{"From: a\r\nFrom b@c.example Mon " + x + "\r\nlost\r\nTo: b\r\n", Size{"From", 7 + 2 + 4}, Size{"From", 7}},
	} {
		for _, section := range []string{c.section, strings.ReplaceAll(c.section, "\r\n", "\n")} {
			r := Senders([]byte(section), asked)
			if r.LongestField != c.field || r.LongestLine != c.line {
				t.Errorf("%q: %v and %v, want %v and %v", section, r.LongestField, r.LongestLine, c.field, c.line)
			}
		}
	}
}

// TestLongestIsLinear wants a field with many malformed lines to be counted once, and not again
// at each of them: 2 MiB take milliseconds, or else minutes.
func TestLongestIsLinear(t *testing.T) {
	const lines = 500_000
	section := append([]byte("From: a\r\n"), bytes.Repeat([]byte("x\r\n"), lines)...)
	if got := Senders(section, asked).LongestField.Bytes; got != 7+3*lines {
		t.Errorf("%d bytes, want %d", got, 7+3*lines)
	}
}
