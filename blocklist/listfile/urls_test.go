package listfile

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzURLs holds the reading of a URL against package net/url: of a URL that both
// accept, the entry is the host, and there is none if the URL has more than a host.
func FuzzURLs(f *testing.F) {
	for _, s := range []string{
		"https://example.com/", "HTTP://User@Example.COM:8080", "https://a.example.com/x", "https://a.example.com?x", "https://a.example.com/#",
		"https://192.0.2.1/", "https://[2001:db8::1]:80/", "https://b%61d.example/", "https://bücher.example/", "ftp://u:p@a.example.com.", "//a.example.com/",
	} {
		f.Add(s)
	}
	o := newOutput(Options{AllowPublicSuffix: true, Now: sampleNow}, nil, nil)
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		e, mine := o.urlHost(s)
		if mine == nil {
			checkEntry(t, e)
		}
		if err != nil || mine != nil || u.Scheme == "" || u.Host == "" {
			return
		}
		want, err := atDomain(u.Hostname())
		if err != nil || e.Key != want.Key {
			t.Errorf("%q: %s, want %s, %v", s, e.Key, want.Key, err)
		}
		if u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.EscapedPath(), "/") != "" {
			t.Errorf("%q: it has more than a host: %s", s, e.Key)
		}
	})
}
