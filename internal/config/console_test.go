package config

import (
	"strings"
	"testing"
)

// TestConsole reads what [console] accepts, and where browsers reach it then. TestBad has what
// it refuses.
func TestConsole(t *testing.T) {
	for _, c := range []struct {
		text, listening, base string
		warning               string
	}{
		{`addr = "127.0.0.1:8025"`, "127.0.0.1:8025", "http://127.0.0.1:8025", ""},
		{`addr = "localhost:0"`, "127.0.0.1:49152", "http://localhost:49152", ""},
		{`addr = "[::1]:0"`, "[::1]:49152", "http://[::1]:49152", ""},
		{"addr = \"127.0.0.1:8025\"\nurl = \"https://gate.example.net:443/\"", "127.0.0.1:8025", "https://gate.example.net", ""},
		{"addr = \"127.0.0.1:8025\"\nurl = \"https://BÜCHER.example:8443\"", "127.0.0.1:8025", "https://xn--bcher-kva.example:8443", ""},
		{"addr = \"127.0.0.1:8025\"\nurl = \"http://[::1]:8026\"", "127.0.0.1:8025", "http://[::1]:8026", ""},
		{"addr = \"127.0.0.1:8025\"\ntls_cert = \"c.pem\"\ntls_key = \"k.pem\"", "127.0.0.1:8025", "https://127.0.0.1:8025", ""},
		{"addr = \":8443\"\nurl = \"https://gate.example.net:8443\"\ntls_cert = [\"c.pem\", \"d.pem\"]\ntls_key = [\"k.pem\", \"l.pem\"]",
			"[::]:8443", "https://gate.example.net:8443", ""},
		{"addr = \"192.0.2.1:8025\"\nurl = \"https://gate.example.net\"", "192.0.2.1:8025", "https://gate.example.net", "can be read on the way"},
		{"addr = \"unix:run/console.sock\"\nurl = \"https://gate.example.net\"\nsso_header = \"x-remote-USER\"", "@", "https://gate.example.net", ""},
		{"addr = \"\"\nurl = \"https://gate.example.net\"", "", "https://gate.example.net", "has no effect without an address"},
	} {
		cfg, err := Parse("/etc/spamgate/config.toml", []byte("[console]\n"+c.text+"\n[[list]]\nname = \"a\"\npath = \"a\"\n"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if base := cfg.Console.Base(c.listening).String(); base != c.base {
			t.Errorf("%s: at %s, want %s", c.text, base, c.base)
		}
		if path, ok := cfg.Console.Unix(); ok && (path != "/etc/spamgate/run/console.sock" || cfg.Console.SSOHeader != "X-Remote-User") {
			t.Errorf("%s: %+v", c.text, cfg.Console)
		}
		for _, file := range append(cfg.Console.TLSCert, cfg.Console.TLSKey...) {
			if !strings.HasPrefix(file, "/etc/spamgate/") {
				t.Errorf("%s: the file %s", c.text, file)
			}
		}
		warnings := ""
		for _, w := range cfg.Warnings {
			if strings.HasPrefix(w.Key, "console.") {
				warnings += w.Error()
			}
		}
		if (warnings == "") != (c.warning == "") || !strings.Contains(warnings, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.text, warnings, c.warning)
		}
	}
}
