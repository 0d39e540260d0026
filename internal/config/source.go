package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"spamgate/blocklist/listfile"
	"spamgate/internal/text"
)

// maxURL bounds the URL of a list or signature, in bytes.
const maxURL = 2000

// source checks where a list comes from, and how it is written.
func (d *document) source(path string, l *List) {
	if l.DNSZone != "" || d.failed[path+".dns_zone"] {
		d.dnsList(path, l)
		return
	}
	d.noEffect(path, l, "has no effect without dns_zone", `remove the line, or write dns_zone instead of path or url`, dnsKeys...)
	switch {
	case l.Managed:
		d.managed(path, l)
	case l.Path != "" && l.URL != "":
		d.fail(path+".url", "cannot be combined with path", "remove one of the two; the gate keeps fetched lists in dir of [state]")
	case l.URL != "":
		d.remote(path, l)
	case l.Path != "":
		if _, err := filepath.Match(l.Path, ""); err != nil {
			d.fail(path+".path", fmt.Sprintf("%q is not a valid glob", l.Path), `close every "[", or write "\\[" for the character`)
		}
		d.noRemote(path, l)
	case !d.failed[path+".url"]:
		d.fail(path+".path", "is missing", `write path = "lists/blocked.txt", or a glob for several files, url = "https://HOST/FILE", dns_zone = "dbl.example.org" or managed = true`)
	}
	d.format(path, l)
}

// The keys that have an effect only in some lists: those from a URL, those in DNS, and those
// that are in neither DNS nor a URL.
var (
	remoteKeys = []string{"refresh", "timeout", "public_key", "signature_url", "signed_file", "allow_http", "tls_ca", "allow_null_sender", "allow_local_parts"}
	dnsKeys    = []string{"dns_codes", "dns_timeout", "dns_on_error", "dns_test"}

	// fileKeys are about entries that the gate reads.
	fileKeys = append([]string{"optional", "allow_public_suffix", "format", "column", "max_bytes", "min_entries", "max_shrink", "max_growth",
		"per_recipient", "managed", "default"}, remoteKeys...)
)

// noRemote refuses the keys that need a url.
func (d *document) noRemote(path string, l *List) {
	const what = "has no effect without url"
	whats := map[string]string{
		"refresh":           what + ": the gate reads a changed file at once",
		"allow_null_sender": what + ": such entries of your own lists always count",
		"allow_local_parts": what + ": such entries of your own lists always count",
	}
	for _, key := range remoteKeys {
		d.noEffect(path, l, cmp.Or(whats[key], what), "remove the line, or write url instead of path", key)
	}
}

// noEffect refuses keys of a list that have no effect. If a value is the default it only warns.
func (d *document) noEffect(path string, l *List, what, hint string, keys ...string) {
	defaults := keysIn(reflect.ValueOf(DefaultList()), "list")
	for i, k := range keysIn(reflect.ValueOf(*l), "list") {
		key := child(path, k.Name)
		switch {
		case !slices.Contains(keys, k.Name):
		case !reflect.DeepEqual(k.Value, defaults[i].Value):
			d.fail(key, what, hint)
		case d.pos.has(key):
			d.warn(key, what, hint)
		}
	}
}

// remote checks the keys of a list that is fetched.
func (d *document) remote(path string, l *List) {
	schemes := map[string]bool{} // of the valid URLs
	for _, k := range []struct{ key, value string }{{"url", l.URL}, {"signature_url", l.SignatureURL}} {
		if k.value == "" {
			continue
		}
		u, err := checkURL(k.value)
		switch {
		case err != nil:
			d.fail(path+"."+k.key, fmt.Sprintf("%q %v", text.ShownURL(k.value), err), `write it as in a browser: "https://lists.example/blocked.txt"`)
		case u.Scheme == "http" && !l.AllowHTTP:
			d.fail(path+"."+k.key, fmt.Sprintf("%q has no TLS, so that anyone on the way can change the list", text.ShownURL(k.value)),
				`write "https://", or allow_http = true if that is intended`)
		default:
			schemes[u.Scheme] = true
		}
	}
	valid := !d.failed[path+".url"] && !d.failed[path+".signature_url"]
	if valid && l.AllowHTTP && !schemes["http"] {
		d.fail(path+".allow_http", `has no effect with "https://"`, "remove the line")
	}
	if valid && l.TLSCA != "" && !schemes["https"] {
		d.fail(path+".tls_ca", `has no effect with "http://"`, `write "https://", or remove the line`)
	}
	if l.PublicKey != "" {
		if err := checkPublicKey(l.PublicKey); err != nil {
			d.fail(path+".public_key", err.Error(), `write the last line of the publisher's minisign.pub: 56 characters that begin with "RW"`)
		}
	} else if l.SignatureURL != "" {
		d.fail(path+".signature_url", "has no effect without public_key, which verifies signatures", "write public_key, or remove the line")
	}
	d.signedFile(path, l)
}

// signedFile checks the name that signatures have for the list's file.
func (d *document) signedFile(path string, l *List) {
	u, err := url.Parse(l.URL)
	switch {
	case l.SignedFile != "" && l.PublicKey == "":
		d.fail(path+".signed_file", "has no effect without public_key, which verifies signatures", "write public_key, or remove the line")
	case strings.ContainsAny(l.SignedFile, "/\t\r\n"):
		d.fail(path+".signed_file", fmt.Sprintf("%q is not the name of a file", l.SignedFile), "write the name without a directory, as the signature's trusted comment has it after \"file:\"")
	case l.PublicKey != "" && l.SignedFile == "" && err == nil && strings.Trim(u.Path, "/") == "":
		d.fail(path+".signed_file", "is missing, because the url does not end in the name of a file", `write signed_file = "blocked.txt", the name that the publisher signs`)
	}
}

// checkURL checks the URL of a list or a signature.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case len(s) > maxURL:
		return nil, fmt.Errorf("has more than %d bytes", maxURL)
	case err != nil || strings.ContainsFunc(s, notInURL):
		return nil, errors.New("is not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New(`does not begin with "https://"`)
	case u.User != nil:
		return u, errors.New("contains a user name or a password, which is not supported")
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, errors.New(`contains a "#", which is not sent to servers`)
	}
	if _, err := normalHost(u.Hostname()); err != nil {
		return nil, fmt.Errorf("has the host %q, which %w", u.Hostname(), err)
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if _, err := parsePort(port, 1); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func notInURL(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// A minisign public key consists of the algorithm, a number that signatures repeat,
// and an Ed25519 key (https://jedisct1.github.io/minisign/).
const (
	minisignAlgorithm = "Ed"
	minisignKeyLen    = len(minisignAlgorithm) + 8 + 32
)

func checkPublicKey(s string) error {
	key, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(key) != minisignKeyLen || string(key[:len(minisignAlgorithm)]) != minisignAlgorithm {
		return fmt.Errorf("%q is not a minisign public key", s)
	}
	return nil
}

// format checks how a list is written.
func (d *document) format(path string, l *List) {
	var names []string
	for _, f := range listfile.Formats {
		names = append(names, string(f))
	}
	if !d.oneOf(path+".format", string(l.Format), names...) || l.Column == "" {
		return
	}
	switch n, err := strconv.Atoi(l.Column); {
	case !l.Format.HasColumn():
		d.fail(path+".column", fmt.Sprintf("has no effect with format = %q", l.Format), `write format = "csv" or "json", or remove the line`)
	case l.Format == listfile.CSV && err == nil && n < 1, strings.TrimSpace(l.Column) == "":
		d.fail(path+".column", fmt.Sprintf("%q is not a column", l.Column), `write its name in the first line, or its number, beginning with "1"`)
	}
}

// managed checks the source of a list that the gate keeps.
func (d *document) managed(path string, l *List) {
	for _, k := range []struct{ name, value string }{{"path", l.Path}, {"url", l.URL}} {
		if k.value != "" {
			d.fail(path+"."+k.name, "cannot be combined with managed = true: the gate keeps the list in dir of [state]", "remove one of the two")
		}
	}
	if plain := DefaultList().Format; l.Format != plain && !d.failed[path+".format"] {
		d.fail(path+".format", fmt.Sprintf("cannot be %q in a managed list, which the gate writes", l.Format), "remove the line; spamgate lists import reads other formats")
	}
	d.noRemote(path, l)
}

// defaultLists checks that default is set only in lists that commands can change, and in one
// for each use.
func (d *document) defaultLists() {
	type use struct {
		kind         string
		perRecipient bool
	}
	first := map[use]int{}
	for i := range d.cfg.Lists {
		l, path := &d.cfg.Lists[i], element("list", i)+".default"
		if !l.Default || l.InDNS() {
			continue
		}
		switch {
		case l.URL != "":
			d.fail(path, "has no effect with url: nothing can be added to a list that others publish", "remove the line, or set it in a list with managed = true or path")
		case l.Format != DefaultList().Format:
			d.fail(path, fmt.Sprintf("has no effect with format = %q, which is read and never written", l.Format), `remove the line, or write format = "plain"`)
		}
		u := use{l.Type, l.PerRecipient}
		if j, ok := first[u]; ok {
			line, _ := d.pos.find(element("list", j) + ".default")
			d.fail(path, fmt.Sprintf("is already set at line %d, in a list of the same type", line), "set it in one of the two: entries without the name of a list go there")
			continue
		}
		first[u] = i
	}
}
