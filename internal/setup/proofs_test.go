package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestProofFaults wants a warning where SPF can prove nobody, because the gate does not see who
// sends.
func TestProofFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for text, want := range map[string]bool{
		"": true,
		"[listen]\naddr = ['127.0.0.1:25', '[::1]:25', 'localhost:26']\n":            true,
		"[listen]\naddr = ['127.0.0.1:25', '0.0.0.0:26']\n":                          false,
		"[listen]\naddr = 'systemd'\n":                                               false,
		"[listen]\nproxy_protocol = ['127.0.0.1']\n":                                 false,
		"[listen]\ntrusted_proxies = ['127.0.0.1']\n":                                false,
		"[listen]\naddr = []\n[[milter]]\naddr = '127.0.0.1:10041'\n":                false,
		"[listen]\nlists = ['blocked']\n":                                            false,
		"[[listener]]\nname = 'other'\naddr = '127.0.0.1:26'\nlists = ['allowed']\n": true,
	} {
		text = "[next_hop]\nallow_public = true\n" + text + `
[[list]]
name = "allowed"
path = "allowed"
type = "allow"
proven_by = ["dkim", "spf"]
[[list]]
name = "blocked"
path = "blocked"
`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		f := &faults{config: c}
		f.proofs()
		if warned := len(f.Warnings) == 1 && strings.Contains(f.Warnings[0].Error(), "list.proven_by: SPF proves no sender at the listener "); warned != want {
			t.Errorf("%s: %v, want a warning: %v", text, f.Warnings, want)
		}
	}
}
