package text

import (
	"strings"
	"testing"
)

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://lists.example/blocked.txt":              "https://lists.example/blocked.txt",
		"https://lists.example":                          "https://lists.example",
		"https://[2001:db8::1]:8443/":                    "https://[2001:db8::1]:8443/",
		"https://lists.example/blocked.txt?token=secret": "https://lists.example/blocked.txt?...",
		"https://lists.example/blocked.txt?...":          "https://lists.example/blocked.txt?...",
		"https://lists.example/blocked.txt?":             "https://lists.example/blocked.txt?...",
		"https://lists.example?secret":                   "https://lists.example?...",
		"https://lists.example/blocked.txt#secret":       "https://lists.example/blocked.txt#...",
		"https://user:secret@lists.example/blocked.txt":  "https://lists.example/blocked.txt",
		"https://secret@lists.example":                   "https://lists.example",
		"https://lists.example/@user/list.txt":           "https://lists.example/@user/list.txt",
		"https://user:se/secret@lists.example/list.txt":  "https://lists.example/list.txt",
		"https://user:se@cret@lists.example/list.txt":    "https://lists.example/list.txt",
		"https://user:secret@lists.example:x/%zz":        "https://lists.example:x/%zz",
		"https://user:secret@lists .example/":            "https://lists .example/",
		"user:secret@lists.example/list.txt":             "lists.example/list.txt",
		"lists.example/list.txt?secret":                  "lists.example/list.txt?...",
		"/list.txt?token=%zz":                            "/list.txt?...",
		"":                                               "",
		"https://urlhaus-api.abuse.ch/v2/files/exports/0123456789abcdef0123456789abcdef0123456789abcdef/recent.csv": "https://urlhaus-api.abuse.ch/v2/files/exports/.../recent.csv",
		"https://lists.example/3f1c9e0a-7d52-4f0b-9d0e-1a2b3c4d5e6f/list.txt":                                       "https://lists.example/.../list.txt",
		"https://lists.example/dGhpcy1pcyB-c2VjcmV0/list.txt":                                                       "https://lists.example/.../list.txt",
		"https://lists.example/feed/x7Kp2mQ9zR":                                                                     "https://lists.example/feed/...",
		"https://lists.example/token/abc/list.txt":                                                                  "https://lists.example/token/.../list.txt",
		"https://lists.example/api-key/abc":                                                                         "https://lists.example/api-key/...",
		"https://lists.example/list.txt;token=abc":                                                                  "https://lists.example/...",
		"https://raw.githubusercontent.com/disposable-email-domains/disposable-email-domains/main/a_list_2026.conf": "https://raw.githubusercontent.com/disposable-email-domains/disposable-email-domains/main/a_list_2026.conf",
		"https://lists.example/2026-11-22/GoodbyeAds-Hosts.v2.txt.gz":                                               "https://lists.example/2026-11-22/GoodbyeAds-Hosts.v2.txt.gz",
	} {
		got := ShownURL(in)
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if again := ShownURL(got); again != got {
			t.Errorf("%s: shown again it is %s", got, again)
		}
	}
}

func TestHideSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"from https://h.example/...":               "from https://h.example/...",
		"nothing to hide, not even in a@b.example": "nothing to hide, not even in a@b.example",
		`parse "https://u:secret@h.example/x?secret": no; see https://a.example/b?secret, (https://c.example/?secret).`: `parse "https://h.example/x?...": no; see https://a.example/b?..., (https://c.example/?...).`,
	} {
		if got := HideSecrets(in); got != want {
			t.Errorf("%s\n%s, want\n%s", in, got, want)
		}
	}
}

// FuzzShownURL checks that neither a user nor a query is shown, whatever is around
// them.
func FuzzShownURL(f *testing.F) {
	f.Add("lists.example", "list.txt")
	f.Add("[::1]:80", "a/b@c")
	f.Add("h:x", "%zz")
	f.Fuzz(func(t *testing.T, host, path string) {
		const secret = "qzsecretqz"
		if strings.Contains(host+path, "qz") {
			return
		}
		for _, u := range []string{
			"https://user:" + secret + "@" + host + "/" + path,
			"https://" + host + "/" + path + "?" + secret,
			"https://" + host + "/" + path + "#" + secret,
		} {
			if got := ShownURL(u); strings.Contains(got, secret) {
				t.Errorf("%q: %q", u, got)
			}
		}
	})
}
