package listedit

import (
	"slices"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
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
	covering := listfile.Covering(e.Key, e.Kind)
	if e.For == "" {
		return covering
	}
	senders := append([]string{e.Key}, covering...)
	keys := slices.Clone(senders)
	for _, recipient := range append([]string{e.For}, listfile.Covering(e.For, listfile.KindOf(e.For))...) {
		for _, key := range senders {
			if recipient != e.For || key != e.Key {
				keys = append(keys, Key(listfile.Entry{For: recipient, Key: key}))
			}
		}
	}
	return keys
}
