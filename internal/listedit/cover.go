package listedit

import (
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
)

// Key returns the key of an entry in an index. It has both sides if the entry counts for a
// recipient.
func Key(e listfile.Entry) string {
	if e.For == "" {
		return e.Key
	}
	return string(segment.AppendFor(nil, e.For, e.Key))
}

// CoveringEntry returns the keys of all other entries that match all that an entry matches,
// as [Key] returns them. An entry for a recipient is also covered by those that count for
// every recipient, which other lists have.
func CoveringEntry(e listfile.Entry) []string {
	covering := Covering(e.Key, e.Kind)
	if e.For == "" {
		return covering
	}
	senders := append([]string{e.Key}, covering...)
	keys := slices.Clone(senders)
	for _, recipient := range append([]string{e.For}, Covering(e.For, KindOf(e.For))...) {
		for _, key := range senders {
			if recipient != e.For || key != e.Key {
				keys = append(keys, Key(listfile.Entry{For: recipient, Key: key}))
			}
		}
	}
	return keys
}

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
	recipients := []string{""}
	if e.For != "" {
		recipients = forms(e.For)
	}
	for _, recipient := range recipients {
		if recipient != "" {
			recipient += " "
		}
		for _, form := range forms(e.Key) {
			text := recipient + sign + form
			if text[0] == '#' {
				continue // this would be a comment
			}
			got, err := listfile.ParseEntry(text, o)
			if err == nil && got.For == e.For && got.Key == e.Key && got.Kind == e.Kind && got.Exception == e.Exception {
				return text
			}
		}
	}
	return ""
}

// forms returns texts that a list may read as a key.
func forms(key string) []string {
	texts := []string{key, "." + key}
	if at := strings.LastIndexByte(key, '@'); at > 0 && key[0] != '"' {
		texts = append(texts, `"`+key[:at]+`"`+key[at:])
	}
	return texts
}

// KindOf returns the kind of a list's key.
func KindOf(key string) sender.Kind {
	switch {
	case key == "<>":
		return sender.KindNull
	case strings.HasPrefix(key, "@"):
		return sender.KindAtDomain
	case strings.HasSuffix(key, "@"):
		return sender.KindLocal
	case strings.Contains(key, "@"):
		return sender.KindAddress
	case strings.HasPrefix(key, "*."):
		return sender.KindSubdomains
	}
	return sender.KindDomain
}
