package config

import (
	"strings"
	"testing"
	"time"
)

// TestPublish has what is accepted, with its warnings.
func TestPublish(t *testing.T) {
	const list = "\n[[list]]\nname = \"a\"\npath = \"a\"\n"
	for _, c := range []struct{ text, warning string }{
		{"[publish]\naddr = \"127.0.0.1:8443\"\nkey = \"k\"" + list + "publish = true\n", ""},
		{"[publish]\naddr = \":8443\"\nkey = \"k\"\ntls_cert = \"c\"\ntls_key = \"k\"\nexpires = \"0\"" + list + "publish = true\n", ""},
		{"[publish]\nkey = \"k\"" + list, ""}, // for spamgate lists publish
		{"[publish]\naddr = \"127.0.0.1:8443\"\nkey = \"k\"" + list, "serves nothing, because no list has publish = true"},
		{list + "publish = true\n", "list.publish: has no effect without addr in [publish]"},
		{"[publish]\ntokens = \"t\"" + list, "publish.tokens: has no effect without an address"},
	} {
		cfg, err := Parse("/etc/spamgate/config.toml", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		warnings := ""
		for _, w := range cfg.Warnings {
			if strings.Contains(w.Key, "publish") {
				warnings += w.Error()
			}
		}
		if (warnings == "") != (c.warning == "") || !strings.Contains(warnings, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.text, warnings, c.warning)
		}
	}
	if d := Default().Publish.Expires; d != 7*24*time.Hour {
		t.Errorf("expires after %v", d)
	}
}
