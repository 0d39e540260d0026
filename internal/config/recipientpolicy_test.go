package config

import (
	"strings"
	"testing"
)

const twoLists = `
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "allowed"
path = "allowed.txt"
type = "allow"
`

// TestRecipientPolicyWarnings wants a warning about each policy that may not do what its author
// expects, and none about others.
func TestRecipientPolicyWarnings(t *testing.T) {
	const quiet = "\nmode = \"monitor\"\n"
	for name, tt := range map[string]struct{ text, want string }{
		"all of them":   {text: "[[recipient_policy]]\nmatch = ['@a.example', '!ann@a.example']" + quiet + "[[recipient_policy]]\nmatch = ['ann@a.example', '@sub.a.example']" + quiet},
		"one is hidden": {"[[recipient_policy]]\nmatch = 'a.example'" + quiet + "[[recipient_policy]]\nmatch = ['b.example', 'ann+tag@sub.a.example']" + quiet, `"ann+tag@sub.a.example" has no effect: the policy at line 9 has all these recipients`},
		"the subdomains are hidden": {"[[recipient_policy]]\nmatch = '*.b.example'" + quiet + "[[recipient_policy]]\nmatch = ['user@', '@a.b.example']" + quiet,
			`"@a.b.example" has no effect: the policy at line 9`},
		"a domain beside its subdomains": {text: "[[recipient_policy]]\nmatch = '*.a.example'" + quiet + "[[recipient_policy]]\nmatch = ['a.example', '@[192.0.2.1]']" + quiet},
		"files":                          {text: "[[recipient_policy]]\nmatch = 'file:a'" + quiet + "[[recipient_policy]]\nmatch = 'file:b'" + quiet},
		"enforced":                       {"[policy]\nmode = 'monitor'\n[[recipient_policy]]\nmatch = 'a.example'\nmax_action = 'tag'\nmode = 'enforce'\n", `has no effect with mode = "monitor" in [policy]`},
		"another domain":                 {"[policy]\nrecipient_domains = ['a.example', '.b.example', 'c.d.example']\n[[recipient_policy]]\nmatch = ['ann@a.example', 'x@y.b.example', '*.d.example', 'sales@', '@a.exmaple', '!x@other.example']" + quiet, `"@a.exmaple" names nobody of recipient_domains`},
		"proofs over DNS":                {"proven_by = ['dkim']\n[[dns_server]]\naddr = '127.0.0.1:53'\nzone = 'bl.example'", "the DNS server 127.0.0.1:53 cannot prove a sender"},
		"an exempt one":                  {"[[recipient_policy]]\nmatch = ['abuse@', 'sales@']" + quiet, `"abuse@" has no effect: exempt_recipients come first`},
		"lists of a listener":            {"[[recipient_policy]]\nmatch = 'sales@'\nlists = ['blocked']\n[[listener]]\nname = 'other'\naddr = '127.0.0.1:26'\nlists = ['allowed']\n[[milter]]\naddr = '127.0.0.1:27'\nlists = ['blocked']", "no list counts for these recipients at the listener other"},
		"DNS alone":                      {"[[recipient_policy]]\nmatch = 'sales@'" + quiet + "[listen]\naddr = []\n[[dns_server]]\naddr = '127.0.0.1:53'\nzone = 'bl.example'", "a question over DNS names no recipient"},
		"a list that DNS has not":        {"[[list]]\nname = 'personal'\npath = 'personal'\nper_recipient = true\n[listen]\naddr = []\n[[dns_server]]\naddr = '127.0.0.1:53'\nzone = 'bl.example'", `no door asks the list "personal": a question over DNS names no recipient`},
		"DKIM for a policy service":      {"proven_by = ['spf', 'dkim']\n[[policy_service]]\naddr = '127.0.0.1:10040'", "the policy service 127.0.0.1:10040 cannot verify DKIM"},
		"SPF for a header":               {"proven_by = ['spf']\n", `proves no sender in the header: SPF is about MAIL FROM`},
		"SPF for the envelope":           {text: "proven_by = ['spf']\nstage = ['envelope']\n"},
		"SPF that clears the header":     {text: "proven_by = ['spf']\noverride = true\n"},
		"SPF for a policy service":       {text: "stage = ['envelope']\nproven_by = ['spf']\n[[policy_service]]\naddr = '127.0.0.1:10040'"},
	} {
		c, err := parse("c.toml", []byte(twoLists+tt.text), false)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want == "" && len(c.Warnings) > 0, tt.want != "" && len(c.Warnings) != 1:
			t.Errorf("%s: %v", name, c.Warnings)
		case tt.want != "" && !strings.Contains(c.Warnings[0].Error(), tt.want):
			t.Errorf("%s: %v, want %s", name, c.Warnings[0], tt.want)
		}
	}
}

// TestUnwrapUnconfirmed wants a filter that is not confirmed to have no wrapped senders, without
// a word in the file.
func TestUnwrapUnconfirmed(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "srs,batv",
		"[filter]\nconfirm = false\n": "",
		"[policy]\nunwrap = []\n":     "",
		"[policy]\nunwrap = []\n[filter]\nconfirm = false\n": "",
	} {
		c, err := parse("c.toml", []byte(text+"[[list]]\nname = 'blocked'\npath = 'blocked'\n"), false)
		if err != nil || strings.Join(c.Policy.Unwrap, ",") != want {
			t.Errorf("%q: %v, want %s (%v)", text, c.Policy.Unwrap, want, err)
		}
	}
}
