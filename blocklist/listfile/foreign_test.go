package listfile

import (
	"strings"
	"testing"
)

// TestIsClient: a name that starts with a number and a hyphen is no range of
// addresses, in any format.
func TestIsClient(t *testing.T) {
	for text, want := range map[string]bool{
		"192.0.2.1": true, "192.0.2.0/24": true, "192.0.2": true, "10": true,
		"192.0.2.1-192.0.2.9": true, "192.0.2.1-9": true, "127.16-31": true, "192.0.2.0-192.0.3.0/24": true,
		"2001:db8::1": true, "2001:db8::/32": true, "2001:db8::1-2001:db8::9": true,
		"9-11commission.gov": false, "30-day-change.com": false, "192-0-2-1.example.com": false,
		"192.0.2.1-static.example.com": false, "1-800-example.com": false, "example.com": false,
	} {
		if got := isClient(text); got != want {
			t.Errorf("isClient(%q) = %t", text, got)
		}
	}
	for format, line := range map[Format]string{
		PostfixAccess: "24-7.example.com REJECT", RBLDNSD: "24-7.example.com", Rspamd: "24-7.example.com",
		Adblock: "24-7.example.com", Hosts: "0.0.0.0 24-7.example.com",
		Dnsmasq: "address=/24-7.example.com/", RPZ: "24-7.example.com CNAME .", Plain: "24-7.example.com",
	} {
		got := readOnce(strings.NewReader(line+"\n"), Options{Format: format, Now: sampleNow})
		if len(got.entries) != 1 || strings.TrimPrefix(got.entries[0].Key, "@") != "24-7.example.com" {
			t.Errorf("%s: %s", format, outcome(got))
		}
	}
}
