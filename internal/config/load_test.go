package config

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestBad reads each broken configuration of testdata/bad and compares the
// error with the file beside it, one fault a line.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken configurations: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(file, ".toml") + ".want")
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := parse(filepath.Base(file), src)
			if err == nil {
				t.Fatalf("accepted: %+v", cfg)
			}
			if got := err.Error() + "\n"; got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadNearlyEmpty(t *testing.T) {
	path := write(t, "[[list]]\nname = 'blocked'\npath = 'lists/*.txt'\n")
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	want := Default()
	want.File = path
	want.Hostname = machineName()
	want.State.Dir = filepath.Join(dir, "state")
	want.NextHop.Addr = "maildir:" + filepath.Join(dir, "mail")
	list := DefaultList()
	list.Name, list.Path = "blocked", filepath.Join(dir, "lists/*.txt")
	want.Lists = []List{list}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
}

// TestLoadAll sets every key to something else than its default.
func TestLoadAll(t *testing.T) {
	path := write(t, `
hostname = "Gate.Bücher.example."
listen = {addr = [":25", "[::1]:0", "systemd", "localhost:2525"], max_message_bytes = 1, max_recipients = 100, shutdown_timeout = "1m30s"}
[next_hop]
addr = "smtp://[2001:db8::1]"
reuse = false
allow_public = true
[filter]
family = "classic:RS,AP"
[state]
dir = "/var/lib/../lib/spamgate"
[headers]
check = ["X-Original-From"]
max_bytes = 1000
check_bounces = true
[policy]
mode = "monitor"
recipient_domains = ["Example.COM", ".Bücher.example", "a_b.example.", "[IPv6:2001:DB8::1]"]
exempt_recipients = ["Abuse@", "A.B+c@Example.com", "@BÜCHER.example", "ÄRGER@"]
exempt_clients = ["192.0.2.1", "192.0.2.0/24", "2001:db8::/32", "::ffff:192.0.2.9"]
contact = "help at https://example.com/mail"
reject_text = "no mail from {sender}: {reason}"
allow_discard = true
[watch]
poll_interval = "100ms"
[log]
output = "journal"
format = "json"
level = "debug"
addresses = "hash"
[[list]]
name = "always"
path = "/etc/spamgate/always.txt"
type = "allow"
override = true
match = "exact"
[[list]]
name = "blocked"
path = "blocked.txt"
action = "discard"
header_action = "tag"
stage = ["header"]
public_reason = false
optional = true
allow_public_suffix = true
`)
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		File:     path,
		Hostname: "gate.xn--bcher-kva.example",
		Listen: Listen{
			Addr: Addresses{":25", "[::1]:0", "systemd", "localhost:2525"}, MaxMessageBytes: 1,
			MaxRecipients: 100, ShutdownTimeout: 90 * time.Second,
		},
		NextHop: NextHop{Addr: "smtp://[2001:db8::1]:25", AllowPublic: true},
		Filter:  Filter{Kind: "classic", Family: "classic:RS,AP", Confirm: true},
		State:   State{Dir: "/var/lib/spamgate"},
		Headers: Headers{Check: []string{"X-Original-From"}, MaxBytes: 1000, CheckBounces: true},
		Policy: Policy{
			Mode:             "monitor",
			RecipientDomains: []string{"example.com", ".xn--bcher-kva.example", "a_b.example", "[ipv6:2001:db8::1]"},
			ExemptRecipients: []string{"abuse@", "a.b+c@example.com", "@xn--bcher-kva.example", "ärger@"},
			ExemptClients: []netip.Prefix{
				netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.0/24"),
				netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("192.0.2.9/32"),
			},
			Contact:      "help at https://example.com/mail",
			RejectText:   "no mail from {sender}: {reason}",
			AllowDiscard: true,
		},
		Watch: Watch{PollInterval: 100 * time.Millisecond},
		Log:   Log{Output: "journal", Format: "json", Level: "debug", Addresses: "hash"},
		Lists: []List{
			{
				Name: "always", Path: "/etc/spamgate/always.txt", Type: "allow", Override: true,
				Stage: []string{"envelope", "header"}, Match: "exact", PublicReason: true,
			},
			{
				Name: "blocked", Path: filepath.Join(filepath.Dir(path), "blocked.txt"), Type: "block", Action: "discard",
				HeaderAction: "tag", Stage: []string{"header"}, Match: "subtree", Optional: true, AllowPublicSuffix: true,
			},
		},
	}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
}

func TestLoadMissing(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "config.toml"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want fs.ErrNotExist", err)
	}
	if !strings.Contains(err.Error(), "--config") {
		t.Errorf("%v: does not say what to do", err)
	}
}

func TestLoadTooLarge(t *testing.T) {
	_, err := Load(write(t, strings.Repeat("#\n", maxFileSize)))
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func TestLoadDirectory(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory was accepted")
	}
}

// TestErrorFields looks at a fault as a program does.
func TestErrorFields(t *testing.T) {
	_, err := parse("f.toml", []byte("[listen]\n  adr = ':25'\n[[list]]\nname = 'a'\npath = 'a.txt'\n"))
	var fault *Error
	if !errors.As(err, &fault) {
		t.Fatalf("got %T", err)
	}
	want := Error{File: "f.toml", Line: 2, Column: 3, Key: "listen.adr", What: "unknown key", Hint: `did you mean "addr"?`}
	if *fault != want {
		t.Errorf("got %+v, want %+v", *fault, want)
	}
}

func TestNextHop(t *testing.T) {
	n := NextHop{Addr: "maildir:/var/mail"}
	if dir, ok := n.Maildir(); dir != "/var/mail" || !ok {
		t.Errorf("Maildir() = %q, %t", dir, ok)
	}
	if _, ok := n.SMTP(); ok {
		t.Error("a Maildir is no SMTP server")
	}
	for addr, want := range map[string]string{
		"smtp://mail.example":     "mail.example:25",
		"smtp://mail.example:26/": "mail.example:26",
		"smtp://192.0.2.1":        "192.0.2.1:25",
		"smtp://[2001:db8::1]:26": "[2001:db8::1]:26",
		"smtp://[2001:db8::1]":    "[2001:db8::1]:25",
	} {
		normal, err := normalNextHop(addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		if got, ok := (NextHop{Addr: normal}).SMTP(); got != want || !ok {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
}
