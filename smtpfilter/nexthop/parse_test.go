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
		got, err := Parse(addr)
		if part, ok := strings.CutPrefix(want, "error "); ok {
			if err == nil || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), expected) {
				t.Errorf("%s: %+v, error %v; want one about %s", addr, got, err, part)
			}
			continue
		}
		if err != nil || strings.TrimSpace(got.Scheme+" "+got.Network)+" "+got.Addr != want {
			t.Errorf("%s: %+v, error %v; want %s", addr, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%s: %s is read as %+v, error %v", addr, got, again, err)
		}
	}
}

func TestNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mail")
	for _, c := range []struct{ addr, want string }{
		{"smtp://192.0.2.1", "smtp://192.0.2.1:25"},
		{"smtps://mx.example.net", "smtps://mx.example.net:465"},
		{"lmtp://[2001:db8::1]", "lmtp://[2001:db8::1]:24"},
		{"lmtp+unix:/run/lmtp", "lmtp+unix:/run/lmtp"},
		{"maildir:" + dir, "maildir:" + dir},
	} {
		target, err := New(c.addr, SMTPConfig{Reuse: true, ProbeInterval: -1})
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
	if _, err := New("imap://host", SMTPConfig{}); err == nil {
		t.Error("imap: no error")
	}
	for _, path := range []string{"a\x00b", "/" + strings.Repeat("x", maxSocketPath)} {
		if _, err := New("lmtp+unix:"+path, SMTPConfig{}); err == nil {
			t.Errorf("%q: no error", path)
		}
	}
	if _, err := NewSMTP(SMTPConfig{Addr: "host"}); err == nil {
		t.Error("no port: no error")
	}
	if _, err := NewSMTP(SMTPConfig{Addr: "host:25", Hostname: "a\r\nb"}); err == nil {
		t.Error("bad host name: no error")
	}
}
