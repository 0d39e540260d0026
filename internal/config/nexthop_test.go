package config

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestNormalNextHop(t *testing.T) {
	for addr, want := range map[string]string{
		"smtp://mail.example":     "smtp://mail.example:25",
		"smtp://Mail.Example:26/": "smtp://mail.example:26",
		"smtp://bücher.example":   "smtp://xn--bcher-kva.example:25",
		"smtp://192.0.2.1":        "smtp://192.0.2.1:25",
		"smtp://192.0.2.1:025":    "smtp://192.0.2.1:25",
		"smtp://[2001:db8::1]:26": "smtp://[2001:db8::1]:26",
		"smtp://[2001:db8:0::1]":  "smtp://[2001:db8::1]:25",
		"smtps://mail.example":    "smtps://mail.example:465",
		"smtps://[::1]:10465":     "smtps://[::1]:10465",
		"lmtp://mail.example":     "lmtp://mail.example:24",
		"lmtp+unix:/run/lmtp":     "lmtp+unix:/run/lmtp",
		"lmtp+unix:run/lmtp":      "lmtp+unix:run/lmtp",
		"maildir:mail":            "maildir:mail",
	} {
		if got, err := normalNextHop(addr); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", addr, got, err, want)
		}
	}
}

func TestNextHopMethods(t *testing.T) {
	for _, test := range []struct {
		addr Addresses
		dir  string
		tcp  []string
	}{
		{addr: Addresses{"maildir:/var/mail"}, dir: "/var/mail"},
		{addr: Addresses{"lmtp+unix:/run/lmtp"}},
		{addr: Addresses{"lmtp://192.0.2.1:24", "lmtp+unix:/run/lmtp"}, tcp: []string{"192.0.2.1:24"}},
		{addr: Addresses{"smtp://mail.example:25", "smtps://[::1]:465"}, tcp: []string{"mail.example:25", "[::1]:465"}},
	} {
		n := NextHop{Addr: test.addr}
		if dir, ok := n.Maildir(); dir != test.dir && ok || ok != (test.dir != "") {
			t.Errorf("%v: Maildir() = %q, %t, want %q", test.addr, dir, ok, test.dir)
		}
		if tcp := n.TCP(); !slices.Equal(tcp, test.tcp) {
			t.Errorf("%v: TCP() = %q, want %q", test.addr, tcp, test.tcp)
		}
	}
}

// TestNextHopPaths checks that paths are relative to the directory of the file.
func TestNextHopPaths(t *testing.T) {
	path := write(t, `
next_hop = {addr = ["lmtp://localhost", "lmtp+unix:run/lmtp", "lmtp+unix:/run/lmtp"]}
[[list]]
name = "blocked"
path = "blocked.txt"
`)
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Addresses{"lmtp://localhost:24", "lmtp+unix:" + filepath.Join(filepath.Dir(path), "run/lmtp"), "lmtp+unix:/run/lmtp"}
	if !slices.Equal(got.NextHop.Addr, want) || !got.NextHop.LMTP() {
		t.Errorf("got %q, LMTP %t, want %q and true", got.NextHop.Addr, got.NextHop.LMTP(), want)
	}

	path = write(t, `
next_hop = {addr = "smtp://localhost", tls = "required", tls_ca = "ca.pem"}
[[list]]
name = "blocked"
path = "blocked.txt"
`)
	if got, err = Load(path); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "ca.pem"); got.NextHop.TLSCA != want {
		t.Errorf("got %q, want %q", got.NextHop.TLSCA, want)
	}
}

// merge is a key of earlier versions: it is accepted with any next hop and any value,
// has no effect, and leads to a warning with its place.
func TestMergeHasNoEffect(t *testing.T) {
	for _, line := range []string{"merge = true", "merge = false"} {
		for _, addr := range []string{"lmtp://localhost", "smtp://localhost", "maildir:mail"} {
			path := write(t, `
[next_hop]
addr = "`+addr+`"
`+line+`
[[list]]
name = "blocked"
path = "blocked.txt"
`)
			got, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.NextHop.Merge {
				t.Errorf("%s with %s has an effect", line, addr)
			}
			want := path + ":4:1: next_hop.merge: has no effect: all recipients of a message share one transaction, and none receives it twice; remove the line"
			if len(got.Warnings) != 1 || got.Warnings[0].Error() != want {
				t.Errorf("%s with %s: %v, want %s", line, addr, got.Warnings, want)
			}
		}
	}
}
