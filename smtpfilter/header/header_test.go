package header

import (
	"slices"
	"strings"
	"testing"
)

func TestMessageID(t *testing.T) {
	for _, c := range []struct{ section, want string }{
		{"Message-ID: <1@a.example>\r\n", "<1@a.example>"},
		{"message-id :\r\n\t<1@a.example> \r\n", "<1@a.example>"},
		{"Message-ID: <1@a.example>\r\nMessage-ID: <2@a.example>\r\n", "<1@a.example>"},
		{"Message-ID:\r\nMessage-ID: <2@a.example>\r\n", ""},
		{"X-Message-ID: <1@a.example>\r\n", ""},
		{"Message-ID: <\x00\x1b[1m\xc3\xa9>\r\n", "<??[1m?>"},
		{"Message-ID: <a\r\n b>", "<a b>"},
		{"Message-ID: " + strings.Repeat("x", 300), strings.Repeat("x", 200)},
		{"Message-ID: " + strings.Repeat("x", 199) + "é", strings.Repeat("x", 199) + "?"},
	} {
		if got := Senders([]byte(c.section), asked).MessageID; got != c.want {
			t.Errorf("%q: %q, want %q", c.section, got, c.want)
		}
	}
}

func TestAskedNames(t *testing.T) {
	section := []byte("from: a@b.example\r\nMessage-ID: <c@d.example>\r\nX-Owner: <>\r\n")
	for _, c := range []struct {
		fields []string
		want   []string
	}{
		{nil, nil},
		{[]string{"FROM"}, []string{"FROM a@b.example"}},
		{[]string{"X-Owner", "From"}, []string{"From a@b.example", "X-Owner (empty)"}},
		{[]string{"Message-ID"}, []string{"Message-ID c@d.example"}},
		{[]string{"From", "from"}, []string{"From a@b.example"}},
		{[]string{""}, nil},
	} {
		if got := show(Senders(section, c.fields)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.fields, got, c.want)
		}
	}
}

// TestSectionIsNotKept reuses the buffer of the section, which a result must not refer to.
func TestSectionIsNotKept(t *testing.T) {
	section := []byte("From: (c) a@b.example, Foo <c@d.example>\r\nMessage-ID: <x@y.example>\r\n")
	r := Senders(section, asked)
	want := append(show(r), r.MessageID)
	clear(section)
	if got := append(show(r), r.MessageID); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
