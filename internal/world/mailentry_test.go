package world

import (
	"slices"
	"strings"
)

// This file says which addresses an entry matches, as lists/README.md does. Addresses and
// entries are in lower case and have no international domains.

var keptKeys = map[string][]string{} // since they are asked for again and again

// keysOf returns what entries can match an address, the most specific first.
func keysOf(address string) []string {
	keys, ok := keptKeys[address]
	if !ok {
		if len(keptKeys) == 10_000 {
			clear(keptKeys)
		}
		keys = makeKeys(address)
		keptKeys[address] = keys
	}
	return keys
}

func makeKeys(address string) []string {
	if address == "" {
		return []string{"<>"}
	}
	local, domain, _ := strings.Cut(address, "@")
	locals := []string{local}
	if user, _, tagged := strings.Cut(local, "+"); tagged {
		locals = append(locals, user)
	}
	var keys []string
	for _, l := range locals {
		keys = append(keys, l+"@"+domain)
	}
	keys = append(keys, "@"+domain, domain)
	for {
		_, parent, ok := strings.Cut(domain, ".")
		if !ok {
			break
		}
		keys = append(keys, "*."+parent, parent)
		domain = parent
	}
	for _, l := range locals {
		keys = append(keys, l+"@")
	}
	return keys
}

// rankOf returns how specifically an entry matches an address, 0 being the most specific; -1
// if it does not match. Exact is match = "exact".
func rankOf(entry, address string, exact bool) int {
	switch {
	case strings.HasPrefix(entry, "*@"):
		entry = entry[1:]
	case strings.HasPrefix(entry, "."):
		entry = entry[1:]
	case exact && !strings.Contains(entry, "@") && !strings.HasPrefix(entry, "*.") && entry != "<>":
		entry = "@" + entry
	}
	return slices.Index(keysOf(address), entry)
}

// listLine is a line of a list.
type listLine struct {
	rcpt      string // of a list with entries for recipients
	exception bool
	entry     string
}

func parseLine(text string, perRecipient bool) listLine {
	var l listLine
	if perRecipient {
		l.rcpt, text, _ = strings.Cut(text, " ")
	}
	l.entry, l.exception = strings.CutPrefix(text, "!")
	return l
}

// place is how specifically a line matches: by the recipient's side first, then by the
// sender's.
type place struct{ rcpt, sender int }

func (p place) compare(q place) int {
	if p.rcpt != q.rcpt {
		return p.rcpt - q.rcpt
	}
	return p.sender - q.sender
}

// own returns what match does, and keeps it.
func (l *list) own(address, rcpt string) int {
	if !l.perRecipient {
		rcpt = ""
	}
	rank, ok := l.known[[2]string{address, rcpt}]
	if !ok {
		if l.known == nil {
			l.known = map[[2]string]int{}
		}
		rank = l.match(address, rcpt)
		l.known[[2]string{address, rcpt}] = rank
	}
	return rank
}

// match returns the rank of the list's own match of an address for a recipient; -1 if it has
// none. An exception cancels what is less or equally specific.
func (l *list) match(address, rcpt string) int {
	var best, exception *place
	for _, text := range l.lines {
		line := parseLine(text, l.perRecipient)
		p := place{sender: rankOf(line.entry, address, l.exact)}
		if l.perRecipient {
			p.rcpt = rankOf(line.rcpt, rcpt, l.exact)
		}
		if p.rcpt < 0 || p.sender < 0 {
			continue
		}
		which := &best
		if line.exception {
			which = &exception
		}
		if *which == nil || p.compare(**which) < 0 {
			*which = &p
		}
	}
	if best == nil || exception != nil && exception.compare(*best) <= 0 {
		return -1
	}
	return best.sender
}
