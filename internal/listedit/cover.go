package listedit

import (
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// Covering returns the keys of all other entries that match all that an entry matches:
// those of example.com and *.com for @example.com.
func Covering(key string, kind sender.Kind) []string {
	var address string
	var kinds sender.KindSet
	broad := kinds.With(sender.KindDomain).With(sender.KindSubdomains)
	switch kind {
	case sender.KindAddress:
		address, kinds = key, sender.AllKinds
	case sender.KindAtDomain:
		address, kinds = "x"+key, broad
	case sender.KindDomain:
		address, kinds = "x@"+key, broad
	case sender.KindSubdomains:
		address, kinds = "x@"+strings.TrimPrefix(key, "*."), broad
	case sender.KindLocal:
		address, kinds = key+"example.com", kinds.With(sender.KindLocal)
	default:
		return nil
	}
	a, err := sender.Parse(address)
	if err != nil {
		return nil
	}
	walk := a.Walk(nil)
	walk.Only(kinds)
	var keys []string
	for k, ok := walk.Next(); ok; k, ok = walk.Next() {
		if text := string(k.Text); text != key {
			keys = append(keys, text)
		}
	}
	return keys
}

// Matching returns the keys of all entries that match an address.
func Matching(a sender.Address) []string {
	walk := a.Walk(nil)
	var keys []string
	for k, ok := walk.Next(); ok; k, ok = walk.Next() {
		keys = append(keys, string(k.Text))
	}
	return keys
}

// Text returns a form of an entry that a list with these options reads as that entry,
// or "" if there is none.
func Text(e listfile.Entry, o listfile.Options) string {
	sign := ""
	if e.Exception {
		sign = "!"
	}
	for _, form := range []string{e.Key, "." + e.Key, quoteLocal(e.Key)} {
		if form == "" || form[0] == '#' {
			continue // this would be a comment
		}
		got, err := listfile.ParseEntry(sign+form, o)
		if err == nil && got.Key == e.Key && got.Kind == e.Kind && got.Exception == e.Exception {
			return sign + form
		}
	}
	return ""
}

// quoteLocal puts quotes around a local part that has none.
func quoteLocal(key string) string {
	at := strings.LastIndexByte(key, '@')
	if at <= 0 || key[0] == '"' {
		return ""
	}
	return `"` + key[:at] + `"` + key[at:]
}
