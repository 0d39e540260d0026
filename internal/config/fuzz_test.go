package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzParse checks that parse returns faults with a place and a remedy, or a
// configuration whose paths can be resolved.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	good, err := filepath.Glob("testdata/good/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(append(files, good...), filepath.Join(root, "config.toml")) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		cfg, err := parse("f.toml", src, false)
		if err != nil {
			checkFaults(t, err, strings.Count(string(src), "\n")+1)
			return
		}
		cfg.resolve("/dir")
		if cfg.Hostname == "" || len(cfg.Lists) == 0 || len(cfg.Listeners)+len(cfg.Doors) == 0 || len(cfg.NextHop.Addr) == 0 {
			t.Errorf("incomplete: %+v", cfg)
		}
		for _, l := range cfg.Listeners {
			if l.Name == "" || len(l.Addr) == 0 || l.TLS != "none" && (len(l.TLSCert) == 0 || len(l.TLSKey) != len(l.TLSCert)) {
				t.Errorf("incomplete listener: %+v", l)
			}
			if slices.ContainsFunc(slices.Concat(l.TLSCert, l.TLSKey), func(p string) bool { return !filepath.IsAbs(p) }) {
				t.Errorf("listener with a relative path: %+v", l)
			}
		}
		for _, door := range cfg.Doors {
			if path, unix := door.Unix(); door.Name == "" || door.Addr == "" || unix && !filepath.IsAbs(path) {
				t.Errorf("incomplete door: %+v", door)
			}
		}
		if console := cfg.Console; console.Addr != "" {
			path, unix := console.Unix()
			base := console.Base("127.0.0.1:8025")
			tls := len(console.TLSCert) > 0
			if unix && (!filepath.IsAbs(path) || tls) || console.SSOHeader != "" && !unix || len(console.TLSKey) != len(console.TLSCert) ||
				base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.Scheme == "http" && (tls || !isLoopback(base.Hostname())) {
				t.Errorf("unsafe console: %+v at %v", console, base)
			}
		}
		for _, p := range cfg.RecipientPolicies {
			if file, ok := p.File(); p.Name == "" || len(p.Match) == 0 || ok && !filepath.IsAbs(file) || p.Exempt && len(p.Lists) > 0 {
				t.Errorf("incomplete policy: %+v", p)
			}
		}
		for _, l := range cfg.Lists {
			if file := l.Path + l.Copy; !filepath.IsAbs(file) || l.Path != "" && l.Copy != "" || (l.URL == "") != (l.Copy == "") {
				t.Errorf("path %q, copy %q, url %q", l.Path, l.Copy, l.URL)
			}
		}
	})
}

func checkFaults(t *testing.T, err error, lines int) {
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	for _, err := range faults {
		fault, ok := err.(*Error)
		if !ok {
			t.Fatalf("%T: %v", err, err)
		}
		if fault.What == "" || fault.Hint == "" || fault.Line > lines {
			t.Errorf("incomplete: %+v", fault)
		}
	}
}

// FuzzNormalize checks that normal forms are stable.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{
		"example.com", ".Example.COM.", "bücher.example", "[IPv6:2001:DB8::1]", "[192.0.2.1]", "192.0.2.1.", "a_b.example",
		"user@", "@example.com", "ÄRGER@Bücher.example", "K@", "İ@",
		"smtp://[::1]", "smtp://mail.example:26/", "smtps://Bücher.example", "lmtp://[fe80::1%eth0]:024", "lmtp://::%]0", "lmtp+unix:/run/lmtp", "maildir:mail",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, normal := range map[string]func(string) (string, error){
			"hostname": hostname, "RecipientDomain": RecipientDomain, "recipientEntry": recipientEntry, "normalNextHop": normalNextHop,
			"normalHost": normalHost,
		} {
			once, err := normal(s)
			if err != nil {
				continue
			}
			if twice, err := normal(once); err != nil || twice != once {
				t.Errorf("%s(%q) = %q, and of that %q, %v", name, s, once, twice, err)
			}
		}
	})
}
