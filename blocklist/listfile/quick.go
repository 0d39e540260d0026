package listfile

import (
	"strings"

	"spamgate/blocklist/sender"
)

// quick are the characters of entries that quickEntry reads: those that every
// normal form leaves unchanged in any place.
var quick = func() (t [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789-_." {
		t[c] = true
	}
	return t
}()

// quickEntry reads a domain or an address in normal form and nothing else, like
// nearly every line of a large list. If it returns false, parseEntry decides;
// otherwise it agrees with parseEntry.
func quickEntry(s string, o *Options) (Entry, bool) {
	at := -1
	for i := range len(s) {
		if quick[s[i]] {
			continue
		}
		if s[i] != '@' || at >= 0 {
			return Entry{}, false
		}
		at = i
	}
	d := s[at+1:]
	if at == 0 || !quickDomain(d) {
		return Entry{}, false
	}
	if at > 0 {
		return Entry{Key: s, Kind: sender.KindAddress}, true
	}
	if o.Exact {
		return Entry{}, false
	}
	if !o.AllowPublicSuffix {
		if icann, private := suffixOf(d); icann || private || strings.IndexByte(d, '.') < 0 {
			return Entry{}, false
		}
	}
	return Entry{Key: s, Kind: sender.KindDomain}, true
}

// quickDomain reports whether d, which has only quick characters, is a domain in
// normal form and certainly not an IPv4 address.
func quickDomain(d string) bool {
	if d == "" || len(d) > sender.MaxDomain || hasLongLabel(d) || d[0] == '.' || strings.Contains(d, "..") {
		return false
	}
	last := d[len(d)-1]
	return last != '.' && (last < '0' || last > '9')
}
