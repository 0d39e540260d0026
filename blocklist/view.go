package blocklist

import (
	"slices"
	"sync"
	"sync/atomic"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// View is a Set of which only some lists count. Like its Set it is immutable, and safe for
// concurrent use.
type View struct {
	set   *Set
	names []string                              // as given to Only
	wraps sender.Wrappings                      // see Unwrapping
	kinds [verdict.AllStages + 1]sender.KindSet // what any list of the stage holds

	proofs verdict.Proofs // what any list asks for

	// Of the lists with entries for recipients, which are not in kinds: what the sender's
	// sides of the stage are, and which lists they are.
	forKinds [verdict.AllStages + 1]sender.KindSet
	forLists []int

	asked [verdict.AllStages + 1][]int // the lists of the stage that are asked, see [Asked]

	// member says of each list whether it counts; nil: all do.
	member []bool

	uncounted bool   // see Uncounted
	changes   []edit // see With; the first one of a key counts
}

// Only returns the View in which the lists of these names count, and with no names all of
// them. It ignores names that no list has. If no list has any of the names, no list
// counts.
//
// It is meant for a few choices of names, as listeners make them, and may be called for
// each message: the Set keeps the View, and finds it again without allocating.
func (s *Set) Only(names []string) *View {
	if len(names) == 0 {
		return &s.all
	}
	if v := s.views.find(names, 0); v != nil {
		return v
	}
	return s.views.keep(s.newView(slices.Clone(names)))
}

// Unwrapping returns the View of the same lists for a judge that also looks up the senders that
// forwarders wrapped into an address. The View itself does not; it only says so. The Set keeps it
// as that of [Set.Only].
func (v *View) Unwrapping(w sender.Wrappings) *View {
	if v.wraps == w {
		return v
	}
	if kept := v.set.views.find(v.names, w); kept != nil {
		return v.like(kept)
	}
	unwrapping := *v
	unwrapping.wraps = w
	if v.uncounted {
		return &unwrapping
	}
	return v.set.views.keep(unwrapping)
}

// Wrappings returns which wrapped senders are looked up, too.
func (v *View) Wrappings() sender.Wrappings { return v.wraps }

// Set returns the Set of the View.
func (v *View) Set() *Set { return v.set }

// newView returns a View of the named lists; with no names of all.
func (s *Set) newView(names []string) View {
	v := View{set: s, names: names}
	if len(names) > 0 {
		v.member = make([]bool, len(s.lists))
	}
	for i := range s.lists {
		l := &s.lists[i]
		if v.member != nil {
			if v.member[i] = slices.Contains(names, l.Name); !v.member[i] {
				continue
			}
		}
		v.proofs |= l.ProvenBy
		kinds := &v.kinds
		if l.PerRecipient {
			v.forLists = append(v.forLists, i)
			kinds = &v.forKinds
		}
		for stage := range v.kinds {
			if l.Stages&verdict.Stage(stage) == 0 {
				continue
			}
			kinds[stage] |= sender.KindSet(l.index.segment.Kinds())
			if l.Asked != nil {
				v.asked[stage] = append(v.asked[stage], i)
			}
		}
	}
	return v
}

// Only returns the View in which those lists of the View count that have one of the names; nil
// means all of them.
func (v *View) Only(names []string) *View {
	switch {
	case names == nil:
		return v
	case v.names != nil:
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(v.names, n) })
	}
	if len(names) == 0 {
		names = noLists
	}
	return v.like(v.set.Only(names).Unwrapping(v.wraps))
}

// Uncounted returns the View of the same lists whose lookups count neither as lookups nor as
// matches of entries, for who only wants to know.
func (v *View) Uncounted() *View {
	return v.changed(v.changes)
}

// like returns another View of the Set, uncounted and with changes if this one is.
func (v *View) like(other *View) *View {
	if !v.uncounted {
		return other
	}
	return other.changed(v.changes)
}

// noLists chooses no list, since no list has this name.
var noLists = []string{""}

// Proofs returns the proofs that allow lists of the View ask for.
func (v *View) Proofs() verdict.Proofs { return v.proofs }

// counts reports whether a list counts at a stage.
func (v *View) counts(list int, stage verdict.Stage) bool {
	return v.set.lists[list].Stages&stage != 0 && (v.member == nil || v.member[list])
}

// maxViews bounds how many Views a Set keeps. Further choices of names work, and make a
// View each time.
const maxViews = 64

// views are the Views that a Set keeps.
type views struct {
	mu   sync.Mutex // held by who adds one
	kept atomic.Pointer[[]*View]
}

func (k *views) find(names []string, w sender.Wrappings) *View {
	kept := k.kept.Load()
	if kept == nil {
		return nil
	}
	for _, v := range *kept {
		if v.wraps == w && slices.Equal(v.names, names) {
			return v
		}
	}
	return nil
}

// keep keeps a View, or returns the one of the same names that is there already.
func (k *views) keep(v View) *View {
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.find(v.names, v.wraps); other != nil {
		return other
	}
	var kept []*View
	if p := k.kept.Load(); p != nil {
		kept = *p
	}
	if len(kept) < maxViews {
		kept = append(slices.Clip(kept), &v)
		k.kept.Store(&kept)
	}
	return &v
}
