package listfile

import (
	"strings"
	"testing"
)

// TestRspamdFlags: what rspamd's own maps have behind a key is told from a text.
func TestRspamdFlags(t *testing.T) {
	for line, want := range map[string]string{
		"example.com bl:1":               "unsupported",
		"example.com both:1.0 ":          "unsupported",
		"example.com\twl:0.5 # a reason": "unsupported",
		"example.com both: offers":       `reason "both: offers"`,
		"example.com 1.0":                "@example.com",
	} {
		got := outcome(readOnce(strings.NewReader(line+"\n"), Options{Format: Rspamd, Now: sampleNow}))
		if !strings.Contains(strings.Split(got, "\n")[0], want) {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}
