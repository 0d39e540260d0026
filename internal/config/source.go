package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"spamgate/blocklist/listfile"
)

// Bounds of what a list may say about its source.
const (
	minRefresh, maxRefresh = time.Minute, 30 * 24 * time.Hour
	minTimeout, maxTimeout = time.Second, time.Hour

	maxListBytes = 1 << 40
	maxURL       = 2000
)

// source checks where a list comes from, and how it is written.
func (d *document) source(path string, l *List) {
	switch {
	case l.Path != "" && l.URL != "":
		d.fail(path+".url", "cannot be together with path", "remove one of the two: what is fetched is kept in dir of [state]")
	case l.URL != "":
		d.remote(path, l)
	case l.Path != "":
		if _, err := filepath.Match(l.Path, ""); err != nil {
			d.fail(path+".path", fmt.Sprintf("%q is no valid glob", l.Path), `close every "[", or write "\\[" for the character`)
		}
		d.noRemote(path, l)
	case !d.failed[path+".url"]:
		d.fail(path+".path", "is missing", `write path = "lists/blocked.txt", or a glob for several files, or url = "https://HOST/FILE"`)
	}
	d.format(path, l)
	d.within(path+".max_bytes", l.MaxBytes, 0, maxListBytes)
}

// noRemote refuses what only a list with a url can have. Of defaults that are
// written out, as in the shipped file, it warns only.
func (d *document) noRemote(path string, l *List) {
	usual := DefaultList()
	for _, k := range []struct {
		key string
		set bool
	}{
		{"refresh", l.Refresh != usual.Refresh},
		{"timeout", l.Timeout != usual.Timeout},
		{"public_key", l.PublicKey != ""},
		{"signature_url", l.SignatureURL != ""},
		{"allow_http", l.AllowHTTP},
		{"tls_ca", l.TLSCA != ""},
	} {
		what, hint := "has no effect without a url", "remove the line, or write url in place of path"
		if k.key == "refresh" {
			what += ": a file that changes is read at once"
		}
		if k.set {
			d.fail(path+"."+k.key, what, hint)
		} else if d.at.has(path + "." + k.key) {
			d.warn(path+"."+k.key, what, hint)
		}
	}
}

// remote checks the keys of a list that is fetched.
func (d *document) remote(path string, l *List) {
	plain, secure := false, false // something is fetched without TLS, with TLS
	for _, k := range []struct{ key, value string }{{"url", l.URL}, {"signature_url", l.SignatureURL}} {
		if k.value == "" {
			continue
		}
		u, err := checkURL(k.value)
		switch {
		case err != nil:
			d.fail(path+"."+k.key, fmt.Sprintf("%q %v", redacted(u, k.value), err), `write it as in a browser: "https://lists.example/blocked.txt"`)
		case u.Scheme == "http" && !l.AllowHTTP:
			d.fail(path+"."+k.key, fmt.Sprintf("%q is without TLS, so that anyone on the way can change the list", k.value),
				`write "https://", or allow_http = true if that is meant`)
		case u.Scheme == "http":
			plain = true
		default:
			secure = true
		}
	}
	if l.AllowHTTP && !plain && !d.failed[path+".url"] && !d.failed[path+".signature_url"] {
		d.fail(path+".allow_http", `is of no use with "https://"`, "remove the line")
	}
	if l.TLSCA != "" && !secure && !d.failed[path+".url"] && !d.failed[path+".signature_url"] {
		d.fail(path+".tls_ca", `is of no use with "http://"`, `write "https://", or remove the line`)
	}
	d.between(path+".refresh", l.Refresh, minRefresh, maxRefresh)
	d.between(path+".timeout", l.Timeout, minTimeout, maxTimeout)
	if l.PublicKey != "" {
		if err := checkPublicKey(l.PublicKey); err != nil {
			d.fail(path+".public_key", err.Error(), `write the last line of the publisher's minisign.pub: 56 characters that begin with "RW"`)
		}
	} else if l.SignatureURL != "" {
		d.fail(path+".signature_url", "is of no use without public_key, as nothing would be verified", "write public_key, or remove the line")
	}
}

// redacted is a URL to be shown.
func redacted(u *url.URL, text string) string {
	if u == nil {
		return text
	}
	return u.Redacted()
}

// checkURL checks the address of a list or a signature.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case len(s) > maxURL:
		return nil, fmt.Errorf("has more than %d bytes", maxURL)
	case err != nil || strings.ContainsFunc(s, notInURL):
		return nil, errors.New("is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New(`does not begin with "https://"`)
	case u.User != nil:
		return u, errors.New("holds a user name or password, which logs would show")
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, errors.New(`holds a "#", which no server is told`)
	}
	if _, err := normalHost(u.Hostname()); err != nil {
		return nil, fmt.Errorf("has the host %q, which %w", u.Hostname(), err)
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("has the port %q, which is no number from 1 to 65535", port)
		}
	}
	return u, nil
}

func notInURL(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// A minisign public key is the algorithm, a number that signatures repeat, and an
// Ed25519 key (https://jedisct1.github.io/minisign/).
const (
	minisignAlgorithm = "Ed"
	minisignKeyLen    = len(minisignAlgorithm) + 8 + 32
)

// checkPublicKey checks a minisign public key.
func checkPublicKey(s string) error {
	key, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(key) != minisignKeyLen || string(key[:len(minisignAlgorithm)]) != minisignAlgorithm {
		return fmt.Errorf("%q is no minisign public key", s)
	}
	return nil
}

// format checks how a list is written.
func (d *document) format(path string, l *List) {
	var names []string
	for _, f := range listfile.Formats {
		names = append(names, string(f))
	}
	if !d.oneOf(path+".format", l.Format, names...) || l.Column == "" {
		return
	}
	switch n, err := strconv.Atoi(l.Column); {
	case l.Format != string(listfile.CSV):
		d.fail(path+".column", fmt.Sprintf("is of no use with format = %q", l.Format), `write format = "csv", or remove the line`)
	case err == nil && n < 1, strings.TrimSpace(l.Column) == "":
		d.fail(path+".column", fmt.Sprintf("%q is no column", l.Column), `write its name in the first line, or its number, beginning with "1"`)
	}
}

// Bounds of the guards. A list of ten billion is what docs/scale.md goes up to.
const (
	maxMinEntries = 10_000_000_000
	maxMaxGrowth  = 1_000_000
)

// guards checks by what an update of a list is held.
func (d *document) guards(path string, l *List) {
	d.within(path+".min_entries", l.MinEntries, 0, maxMinEntries)
	d.within(path+".max_shrink", l.MaxShrink, 1, 100)
	d.within(path+".max_growth", l.MaxGrowth, 0, maxMaxGrowth)
	if d.oneOf(path+".on_protected", l.OnProtected, "skip", "hold", "accept") && l.Type == typeAllow && l.OnProtected != DefaultList().OnProtected {
		d.fail(path+".on_protected", "is of no use in an allow list, which blocks nobody", `remove the line, or write type = "block"`)
	}
}

// guard checks [guard].
func (d *document) guard() {
	protect := d.cfg.Guard.Protect
	for i, s := range protect {
		path := element("guard.protect", i)
		name, err := domainName(s)
		switch {
		case err != nil:
			d.fail(path, fmt.Sprintf("%q %v", s, err), `write a domain such as "example.com", without "@", "*" or a dot in front`)
		case slices.Contains(protect[:i], name):
			d.fail(path, fmt.Sprintf("%q is there twice", s), "remove one")
		}
		protect[i] = name
	}
}
