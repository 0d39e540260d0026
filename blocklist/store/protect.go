package store

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
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
	for at := len(domain) - 1; at >= -1 && len(domain)-at-1 <= p.longest; at-- {
		if at >= 0 && domain[at] != '.' {
			continue
		}
		if last := domain[at+1:]; p.marks.has(last) && p.below[last] {
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
