package decisions

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a row, in bytes: all of its text is hostile. A whole row has less than 64 KiB.
const (
	maxWord      = 256      // an id, a name
	maxText      = 2 << 10  // an address, a reason, an attribute
	maxReply     = 8 << 10  // a next hop's reply has several lines
	maxAddresses = 20 << 10 // recipients; the same for header senders
	maxAttrs     = 10 << 10
)

// Trim makes a decision valid UTF-8 and bounds its size, before it is stored or shown.
func (d *Decision) Trim(now time.Time) {
	if y := d.Time.Year(); y < 1980 || y > 2200 {
		d.Time = now
	}
	d.Time = d.Time.Round(0).UTC()
	d.Count = max(d.Count, 1)
	if d.Last.Before(d.Time) {
		d.Last = d.Time
	}
	d.Last = d.Last.Round(0).UTC()
	for _, s := range []*string{&d.ID, &d.Event, &d.Level, &d.Door, &d.Listener, &d.Client, &d.Action, &d.List} {
		*s = cut(*s, maxWord)
	}
	for _, s := range []*string{&d.Helo, &d.Sender, &d.MessageID, &d.Entry, &d.Reason} {
		*s = cut(*s, maxText)
	}
	d.Reply = cut(d.Reply, maxReply)
	if d.Sender == "" {
		d.Sender = nullSender
	}
	var left int
	d.Recipients, left = trimAddresses(d.Recipients)
	d.MoreRecipients += left
	d.HeaderSenders, left = trimAddresses(d.HeaderSenders)
	d.MoreHeaderSenders += left
	d.Attrs = trimAttrs(d.Attrs)
}

// trimAddresses returns the first addresses that fit, and the number of the others. It changes
// nothing that others may use.
func trimAddresses(all []string) (first []string, left int) {
	size := 0
	first = all
	for i, a := range all {
		if c := cut(a, maxText); c != a {
			if &first[0] == &all[0] {
				first = slices.Clone(all)
			}
			first[i] = c
		}
		if size += len(first[i]) + 8; size > maxAddresses {
			return first[:i:i], len(all) - i
		}
	}
	return first, 0
}

func trimAttrs(all []Attr) []Attr {
	size := 0
	first := make([]Attr, 0, len(all))
	for _, a := range all {
		a = Attr{cut(a.Key, maxWord), cut(a.Value, maxText)}
		if size += len(a.Key) + len(a.Value) + 8; size > maxAttrs {
			break
		}
		first = append(first, a)
	}
	return first
}

// cut returns at most n bytes of s, cut between characters and made valid.
func cut(s string, n int) string {
	if len(s) > n {
		for s = s[:n]; len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) && len(s) > n-utf8.UTFMax; {
			s = s[:len(s)-1]
		}
		s = strings.Clone(s)
	}
	return clean(s)
}

// clean makes a text valid UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
