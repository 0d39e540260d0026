package providers

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"

	"spamgate/blocklist/sender"
)

func TestDomains(t *testing.T) {
	domains := Domains()
	if n := len(domains); n < 100 || n > 200 {
		t.Errorf("%d domains: a few large providers are meant", n)
	}
	for i, d := range domains {
		if normal, err := sender.NormalizeDomain(d); err != nil || normal != d {
			t.Errorf("%s: in normal form %q, %v", d, normal, err)
		}
		if i > 0 && domains[i-1] == d {
			t.Errorf("%s stands twice", d)
		}
		if suffix, _ := publicsuffix.PublicSuffix(d); suffix == d {
			t.Errorf("%s is a public suffix: people have domains there, and no addresses", d)
		}
	}
	for _, known := range []string{"gmail.com", "outlook.com", "yahoo.co.jp", "qq.com"} {
		if !slices.Contains(domains, known) {
			t.Errorf("%s is missing", known)
		}
	}
}

// TestSources checks that each name has a source.
func TestSources(t *testing.T) {
	source := ""
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == "":
			source = ""
		case line[0] == '#':
			source += line
		case !strings.Contains(source, "https://") && !strings.Contains(source, "sign-up pages"):
			t.Errorf("%s: nothing above it says where that is public", line)
		}
	}
}
