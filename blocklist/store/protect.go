package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/suffix"
)

// Protected holds the domains that no block list's entry may cover, entirely or in part. Nil
// protects nothing.
type Protected struct {
	covers map[string]string // by key: the protected name that an entry covers entirely
	below  map[string]bool   // the names whose subdomains are protected, too

	longest int    // bytes of a name in below
	marks   marks  // of all keys of covers and below
	names   string // all of them: what tells two apart
}

// coveringKinds are the kinds of key that cover a whole domain.
const coveringKinds = sender.KindSet(1<<sender.KindAtDomain | 1<<sender.KindDomain | 1<<sender.KindSubdomains)

// Protect parses the names of [Config.Protect]. They are those of the configuration, some
// dozens.
func Protect(names []string) (*Protected, error) {
	if len(names) == 0 {
		return nil, nil
	}
	p := &Protected{covers: map[string]string{}, below: map[string]bool{}}
	names = slices.Sorted(slices.Values(names))
	for _, name := range names {
		domain, alone := strings.CutPrefix(name, "@")
		a, err := sender.Parse("someone@" + domain)
		if err != nil {
			return nil, fmt.Errorf("protected name %q is not a domain: %w", name, err)
		}
		walk := a.Walk(nil)
		walk.Only(coveringKinds)
		for key, ok := walk.Next(); ok; key, ok = walk.Next() {
			if _, known := p.covers[string(key.Text)]; !known {
				p.covers[string(key.Text)] = domain
				p.marks.add(string(key.Text))
			}
		}
		if !alone {
			p.below[domain] = true
			p.marks.add(domain)
			p.longest = max(p.longest, len(domain))
		}
	}
	p.names = strings.Join(names, " ")
	return p, nil
}

// covered returns the protected name that an entry with this key covers entirely, or of which it
// covers a part; "" if there is none.
func (p *Protected) covered(kind sender.Kind, key string) (name string, entirely bool) {
	if p == nil || !coveringKinds.Has(kind) {
		return "", false
	}
	if p.marks.has(key) {
		if name := p.covers[key]; name != "" {
			return name, true
		}
	}
	domain := key
	switch kind {
	case sender.KindAtDomain:
		domain = key[len("@"):]
	case sender.KindSubdomains:
		domain = key[len("*."):]
	}
	// The name may be the last labels of the domain.
	for pos := len(domain) - 1; pos >= -1 && len(domain)-pos-1 <= p.longest; pos-- {
		if pos >= 0 && domain[pos] != '.' {
			continue
		}
		if last := domain[pos+1:]; p.marks.has(last) && p.below[last] {
			return last, false
		}
	}
	return "", false
}

// marks tells most names that are not in a map from those that may be, without hashing them: a
// long list has millions, and the maps some hundred keys.
type marks [64]uint64

// at returns the bit of a name that is not empty.
func (m *marks) at(name string) (word, bit uint) {
	n := uint(len(name))
	h := n + 7*uint(name[0]) + 131*uint(name[n/2]) + 1031*uint(name[n/3])
	return h >> 6 % 64, h % 64
}

func (m *marks) add(name string) {
	word, bit := m.at(name)
	m[word] |= 1 << bit
}

func (m *marks) has(name string) bool {
	if name == "" {
		return false
	}
	word, bit := m.at(name)
	return m[word]&(1<<bit) != 0
}

// Omissions decides which valid entries a list leaves out. It is the one place that decides
// that: the gate asks it for each entry that it reads, and so do the commands that print,
// compare or export what a list holds.
type Omissions struct {
	protected            *Protected
	nullSender, anywhere bool // leaves out <>, and name@
}

// Omissions returns what the list leaves out, if these names are protected.
func (l *List) Omissions(names *Protected) Omissions {
	var o Omissions
	if l.Type == blocklist.Block && l.OnProtected != AcceptProtected {
		o.protected = names
	}
	if l.URL != "" {
		o.nullSender, o.anywhere = !l.AllowNullSender, !l.AllowLocalParts
	}
	return o
}

// Of returns why the list leaves out an entry. It never leaves out an exception.
func (o Omissions) Of(e *listfile.Entry) Omission {
	switch {
	case e.Exception:
	case e.Kind == sender.KindNull && o.nullSender:
		return Omission{reason: nullSender}
	case e.Kind == sender.KindLocal && o.anywhere:
		return Omission{reason: localPart}
	default:
		if name, entirely := o.protected.covered(e.Kind, e.Key); entirely {
			return Omission{coversProtected, name}
		} else if name != "" {
			return Omission{belowProtected, name}
		}
	}
	return Omission{}
}

// Omission is why a list leaves out a valid entry. The zero Omission stands for an entry that
// counts.
type Omission struct {
	reason omissionReason
	name   string // that is protected
}

type omissionReason uint8

const (
	included omissionReason = iota
	coversProtected
	belowProtected
	nullSender
	localPart
)

// Omitted reports whether the entry is left out.
func (o Omission) Omitted() bool { return o.reason != included }

// Protected returns the protected name because of which the entry is left out; "" if it is
// left out for another reason, or not.
func (o Omission) Protected() string { return o.name }

// Entirely reports whether the entry covers all of the protected name.
func (o Omission) Entirely() bool { return o.reason == coversProtected }

// What says why the entry is left out, and Hint what to do about it.
func (o Omission) What() string {
	switch o.reason {
	case coversProtected:
		return fmt.Sprintf("it covers all of %s, which is protected", o.name)
	case belowProtected:
		return fmt.Sprintf("it covers names below %s, which is protected with its subdomains", o.name)
	case nullSender:
		return "the null sender, which all bounces have; a list from a URL does not decide about it"
	case localPart:
		return "it matches at every domain; in a list from a URL such entries do not count"
	}
	return ""
}

// Hint returns what to write if the entry should count.
func (o Omission) Hint() string {
	switch o.reason {
	case coversProtected:
		return `list single addresses there, or set on_protected = "accept" for this list`
	case belowProtected:
		return fmt.Sprintf(`list single addresses there, write "@%s" in protect to protect that name alone, or set on_protected = "accept" for this list`, o.name)
	case nullSender:
		return "set allow_null_sender = true for this list if it should count"
	case localPart:
		return "set allow_local_parts = true for this list if it should count"
	}
	return ""
}

// problem describes an entry that was left out.
func (o Omission) problem(path string, e *listfile.Entry) blocklist.FileProblem {
	text := e.Key
	if e.For != "" {
		text = e.For + " " + e.Key
	}
	return blocklist.FileProblem{
		File: path, Protected: o.name != "", Disallowed: o.name == "",
		Problem: listfile.Problem{Line: e.Line, Text: text, What: o.What(), Hint: o.Hint()},
	}
}

// ErrAsked says that a list is asked over DNS: it has no files, versions or entries here. Use
// errors.Is.
var ErrAsked = errors.New("it is asked over DNS, and has no files, entries or versions here")

// asked returns what is asked of a list in DNS. Names that an entry of the list could not have
// do not count: public suffixes and, unless the list accepts them, protected names.
func (l *List) asked(protected *Protected) *blocklist.Asked {
	if l.OnProtected == AcceptProtected {
		protected = nil
	}
	kind, prefix := sender.KindDomain, ""
	if l.Exact {
		kind, prefix = sender.KindAtDomain, "@"
	}
	return &blocklist.Asked{
		Exact:  l.Exact,
		Source: "dns:" + l.Zone,
		Omits: func(domain string) bool {
			name, _ := protected.covered(kind, prefix+domain)
			return name != "" || suffix.IsPublic(domain)
		},
	}
}
