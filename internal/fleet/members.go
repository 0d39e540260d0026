package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/text"
)

// Bounds of what is read of other members: whoever has the credentials can write as many signs of
// life as the servers take.
const (
	maxMembers      = 10_000
	maxMembersBytes = 64 << 20
	maxTwins        = 3 // members with one name that are shown
	maxListsShown   = 1000
	maxNameBytes    = 100
	maxInstance     = 40
)

// Members returns who has shown a sign of life lately, sorted by name. Of many with one name it
// returns a few, which say how many they are.
func (m *Member) Members(ctx context.Context) ([]Presence, error) {
	b, err := m.reach(ctx)
	if err != nil && !errors.Is(err, ErrReadOnly) {
		return nil, err
	}
	if err := m.onlyReads(ctx); err != nil {
		return nil, fmt.Errorf("%w, not to see the other members", err)
	}
	kv, err := b.members(ctx)
	if err != nil {
		return nil, m.offline(err)
	}
	w, err := kv.WatchAll(ctx)
	b.closeSide(bucketMembers, err)
	if err != nil {
		return nil, m.offline(err)
	}
	defer stop(w)
	all := membership{own: m.id, byName: map[string][]Presence{}, twins: map[string]int{}}
	for {
		select {
		case <-ctx.Done():
			return nil, m.offline(context.Cause(ctx))
		case e, ok := <-w.Updates():
			switch {
			case !ok: // the library ends the watch when ctx ends, too
				return nil, m.offline(cmp.Or(context.Cause(ctx), errNoSigns))
			case e != nil && all.add(e):
				continue
			}
			m.signs.mu.Lock()
			if m.signs.flooded = (time.Time{}); e != nil {
				m.signs.flooded = time.Now()
			}
			m.signs.mu.Unlock()
			return all.sorted(), nil
		}
	}
}

var errNoSigns = errors.New("the servers have ended the answer about the members")

// membership collects signs of life.
type membership struct {
	own    string // the instance that is always kept
	byName map[string][]Presence
	twins  map[string]int // signs of life by name
	number int
	bytes  int
}

// add adds a sign of life, and reports whether there may be more.
func (s *membership) add(e jetstream.KeyValueEntry) bool {
	s.number++
	s.bytes += len(e.Value())
	if s.number > maxMembers || s.bytes > maxMembersBytes {
		return false
	}
	p, ok := parsePresence(e)
	if !ok {
		return true
	}
	s.twins[p.Name]++
	if len(s.byName[p.Name]) < maxTwins || p.Instance == s.own {
		s.byName[p.Name] = append(s.byName[p.Name], p)
	}
	return true
}

// sorted returns all, sorted by name.
func (s *membership) sorted() (all []Presence) {
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		twins := s.byName[name]
		slices.SortFunc(twins, func(a, b Presence) int { return strings.Compare(a.Instance, b.Instance) })
		for _, p := range twins {
			p.Twins = s.twins[name] - 1
			all = append(all, p)
		}
	}
	return all
}

// parsePresence parses a sign of life, of which nothing is trusted.
func parsePresence(e jetstream.KeyValueEntry) (p Presence, ok bool) {
	if e.Operation() != jetstream.KeyValuePut {
		return p, false
	}
	p, ok = parseSign(e.Key(), e.Value())
	p.Seen = e.Created()
	p.Clock = p.Time.Sub(p.Seen)
	return p, ok
}

// parseSign parses the value of a key.
func parseSign(key string, value []byte) (p Presence, ok bool) {
	if len(value) > maxValue || json.Unmarshal(value, &p) != nil {
		return Presence{}, false
	}
	if !isName(p.Name) || !isInstance(p.Instance) || key != escaped(p.Name)+"."+p.Instance { // it would be shown as another member
		return Presence{}, false
	}
	p.Version, p.Clash, p.Run = shortened(p.Version), shortened(p.Clash), shortened(p.Run)
	p.Lists = p.Lists[:min(len(p.Lists), maxListsShown)]
	for i := range p.Lists {
		l := &p.Lists[i]
		l.Name, l.SHA256, l.Error = shortened(l.Name), shortened(l.SHA256), shortened(l.Error)
	}
	if len(p.Report) > maxReport {
		p.Report = nil
	}
	p.Time = p.Time.UTC()
	if year := p.Time.Year(); year < 1 || year > 9999 { // JSON has no such years
		p.Time = time.Time{}
	}
	p.Twins = 0
	return p, true
}

// isName reports whether a name can be that of a member: [fleet] name takes no others.
func isName(name string) bool {
	for _, c := range []byte(name) {
		if c != '.' && escaped(string(c)) != string(c) {
			return false
		}
	}
	return name != "" && len(name) <= maxNameBytes
}

func isInstance(id string) bool { return id != "" && len(id) <= maxInstance && escaped(id) == id }

// maxClock is how wrong a clock may be without being called wrong.
const maxClock = 30 * time.Second

// maxProblems bounds the problems that are told.
const maxProblems = 200

// Problems returns what is wrong with the members, in words, and what to do about it: wrong
// clocks, names that two use, lists that are behind.
func Problems(members []Presence) (problems []string) {
	for i, p := range members {
		problems = append(problems, p.problems(i > 0 && members[i-1].Name == p.Name)...)
	}
	if n := len(problems) - maxProblems; n > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", n))
	}
	return problems
}

// problems returns what is wrong with one member. Second says that it is not the first with its
// name.
func (p *Presence) problems(second bool) (problems []string) {
	say := func(format string, args ...any) {
		problems = append(problems, p.Name+": "+fmt.Sprintf(format, args...))
	}
	if p.Twins > 0 && !second {
		say("%d gates have this name: give each its own [fleet] name", p.Twins+1)
	}
	if p.Clash != "" {
		say("%s: give each gate its own [fleet] name and state directory", p.Clash)
	}
	if p.Clock.Abs() > maxClock {
		way := "ahead of"
		if p.Clock < 0 {
			way = "behind"
		}
		say("its clock is %v %s the servers' clock: let an NTP client set it", p.Clock.Abs().Round(time.Second), way)
	}
	for _, l := range p.Lists {
		switch {
		case l.Error != "":
			say("list %s: %s", l.Name, l.Error)
		case l.Sequence == 0:
			say("list %s: it has no version of the fleet yet, and serves what it has of its own", l.Name)
		}
	}
	return problems
}

// Well reports whether nothing is wrong with a member, as far as it knows.
func (p *Presence) Well() bool { return p.Twins == 0 && len(p.problems(false)) == 0 }

// Notes returns what an admin may want to know of the members, although nothing is wrong: which
// versions of the program they run if these differ, and who may only read.
func Notes(members []Presence) (notes []string) {
	versions := map[string][]string{}
	var readers []string
	for _, p := range members {
		versions[p.Version] = append(versions[p.Version], p.Name)
		if p.ReadOnly {
			readers = append(readers, p.Name)
		}
	}
	if len(versions) > 1 {
		var all []string
		for _, v := range slices.Sorted(maps.Keys(versions)) {
			all = append(all, fmt.Sprintf("%s (%s)", cmp.Or(v, "an unknown one"), several(versions[v])))
		}
		notes = append(notes, fmt.Sprintf("the members run different versions: %s: upgrade the older ones", several(all)))
	}
	if len(readers) > 0 {
		notes = append(notes, fmt.Sprintf("credentials that only permit reading: %s: edits are refused there", several(readers)))
	}
	return notes
}

// several returns the first of some texts, and how many more there are.
func several(texts []string) string {
	const most = 5
	if n := len(texts) - most; n > 1 {
		return strings.Join(texts[:most], ", ") + " and " + text.Count(n, "more", "more")
	}
	return strings.Join(texts, ", ")
}
