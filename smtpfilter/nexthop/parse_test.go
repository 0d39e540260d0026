package nexthop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	text, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		addr, want, _ := strings.Cut(line, " ")
		want = strings.TrimSpace(want)
		scheme, rest, err := Parse(addr)
		if part, ok := strings.CutPrefix(want, "error "); ok {
			if err == nil || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), possible) {
				t.Errorf("%s: %q %q, error %v; want one about %s", addr, scheme, rest, err, part)
			}
			continue
		}
		if err != nil || scheme+" "+rest != want {
			t.Errorf("%s: %q %q, error %v; want %s", addr, scheme, rest, err, want)
		}
	}
}

func TestNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mail")
	for _, c := range []struct{ addr, want string }{
		{"smtp://192.0.2.1", "smtp://192.0.2.1:25"},
		{"maildir:" + dir, "maildir:" + dir},
	} {
		target, err := New(c.addr, SMTPConfig{Reuse: true})
		if err != nil {
			t.Fatal(err)
		}
		if target.String() != c.want {
			t.Errorf("%s: %s", c.addr, target)
		}
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := New("lmtp://host", SMTPConfig{}); err == nil {
		t.Error("lmtp: no error")
	}
	if _, err := NewSMTP(SMTPConfig{Addr: "host"}); err == nil {
		t.Error("no port: no error")
	}
	if _, err := NewSMTP(SMTPConfig{Addr: "host:25", Hostname: "a\r\nb"}); err == nil {
		t.Error("bad host name: no error")
	}
}
