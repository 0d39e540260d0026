package world

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// TestLookup plays two lists that are read again, whose indexes are damaged, and one in DNS.
//
// What is watched: a sender is listed if a list holds its domain or a parent of it; one that only a
// damaged index holds is never let in; what a list in DNS says of an exempt name does not count.
func TestLookup(t *testing.T) {
	run(t, &part{few: 100, draw: drawLookup, play: playLookup})
}

// A lookupMove reads a list again, damages one, or looks a domain up.
type lookupMove struct {
	what   string
	list   int
	has    []int // what a list holds; of a lookup: what the list in DNS holds, and what is exempt
	exempt []int
	domain int
}

func (m *lookupMove) String() string { return fmt.Sprintf("%+v", *m) }

var lookupDomains = []string{"a.example", "b.a.example", "c.b.a.example", "d.example", "e.d.example"}

func drawLookup(r *rand.Rand) []move {
	some := func() (all []int) {
		for range r.IntN(3) {
			all = append(all, r.IntN(len(lookupDomains)))
		}
		return all
	}
	moves := make([]move, 4+r.IntN(20))
	for i := range moves {
		moves[i] = &lookupMove{pick(r, "read", "damage", "look up", "look up", "look up", "look up"), r.IntN(2), some(), some(), r.IntN(len(lookupDomains))}
	}
	return moves
}

// A lookupWorld is what the lists hold, and the Set that serves.
type lookupWorld struct {
	world   *world
	sets    blocklist.SetConfig
	set     *blocklist.Set
	has     [2][]int
	damaged [2]bool
	exempt  []int
}

func playLookup(w *world, moves []move) error {
	s := &lookupWorld{world: w, sets: blocklist.SetConfig{Filter: blocklist.Filter{Kind: blocklist.KindFuse}, Keys: blocklist.ProcessKeys()}}
	asked := &blocklist.Asked{Source: "dns:dns", Omits: func(d string) bool { return s.omits(d) }}
	for _, l := range []blocklist.List{{Name: "a", Action: verdict.Reject}, {Name: "b", Action: verdict.Reject}, {Name: "dns", Action: verdict.Reject, Asked: asked}} {
		s.sets.Lists = append(s.sets.Lists, blocklist.SetList{List: l, Index: s.index(nil, "")})
	}
	check(s.build())
	for i, m := range moves {
		m := m.(*lookupMove)
		w.tell("%d. %s: list %d, %v, exempt %v, %s", i+1, m.what, m.list, m.has, m.exempt, lookupDomains[m.domain])
		if m.what == "look up" {
			if err := s.look(m); err != nil {
				return err
			}
			continue
		}
		before := *s
		before.sets.Lists = slices.Clone(s.sets.Lists)
		if m.what == "read" {
			s.has[m.list], s.damaged[m.list] = m.has, false
			s.sets.Lists[m.list].Index = s.index(m.has, "")
		} else if len(s.has[m.list]) > 0 && !s.damaged[m.list] { // the same entries, and the disk has lost some
			s.damaged[m.list] = true
			s.sets.Lists[m.list].Index = s.index(s.has[m.list], filepath.Join(w.dir, fmt.Sprint(i)))
			s.sets.Lists[m.list].Index.MarkDamaged()
		}
		if err := s.build(); err != nil && s.damaged == [2]bool{} {
			return err
		} else if err != nil { // what served serves on
			*s = before
		}
	}
	return nil
}

// build makes a Set that follows the one that serves.
func (s *lookupWorld) build() error {
	var before []*blocklist.Set
	if s.set != nil {
		before = append(before, s.set)
	}
	set, err := blocklist.NewSet(context.Background(), s.sets, before...)
	if err == nil {
		s.set = set
	}
	return err
}

// index makes an index of domains; with a path a damaged one.
func (s *lookupWorld) index(has []int, path string) *blocklist.Index {
	b := segment.NewBuilder(segment.BuildOptions{Key: s.sets.Keys.Segment()})
	adder := b.Adder()
	for _, i := range has {
		check(adder.Add(segment.Entry{Key: lookupDomains[i], Kind: uint8(sender.KindDomain), Line: i + 1}))
	}
	made := must(b.Finish(context.Background(), path, segment.Header{}))
	if path == "" {
		return blocklist.NewIndex(made, []string{"/list"}, nil)
	}
	text := read(path)
	text[bytes.Index(text, []byte("example"))] ^= 1
	check(os.WriteFile(path+"d", text, 0o600))
	file := must(os.Open(path + "d"))
	defer file.Close()
	return blocklist.NewIndex(must(segment.Map(file, path, s.sets.Keys.Segment())), []string{"/list"}, nil)
}

// listHolds reports whether a list holds a domain, or a parent of it.
func listHolds(list []int, domain string) bool {
	return slices.ContainsFunc(list, func(i int) bool { return strings.HasSuffix("."+domain, "."+lookupDomains[i]) })
}

// omits reports whether a name is exempt, or a parent of one that is.
func (s *lookupWorld) omits(name string) bool {
	return slices.ContainsFunc(s.exempt, func(i int) bool { return strings.HasSuffix("."+lookupDomains[i], "."+name) })
}

// look compares a lookup with the model.
func (s *lookupWorld) look(m *lookupMove) error {
	domain := lookupDomains[m.domain]
	s.exempt = m.exempt
	name := "" // the list in DNS names the longest that it holds
	for _, i := range m.has {
		if listHolds([]int{i}, domain) && len(lookupDomains[i]) > len(name) {
			name = lookupDomains[i]
		}
	}
	listed := name != "" && !s.omits(name) && !s.omits(domain)
	found, err := s.set.Only(nil).Find(verdict.Envelope, must(sender.Parse("x@"+domain)), blocklist.FindOptions{Answer: func(questions []blocklist.Question) {
		for i := range questions {
			questions[i].Name = name
		}
	}})
	unsure := false
	for i, has := range s.has {
		if unsure = unsure || s.damaged[i] && listHolds(has, domain); !s.damaged[i] {
			listed = listed || listHolds(has, domain)
		}
	}
	switch {
	case unsure && err == nil && found.IsZero():
		return fmt.Errorf("%s, which a damaged list holds, is let in", domain)
	case !unsure && err == nil && found.IsZero() == listed:
		return fmt.Errorf("%s is listed: %t, and is found: %t", domain, listed, !found.IsZero())
	}
	return nil
}
