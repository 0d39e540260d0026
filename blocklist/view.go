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
	kinds [verdict.AllStages + 1]sender.KindSet // what any list of the stage holds

	asked [verdict.AllStages + 1][]int // the lists of the stage that are asked, see [Asked]

	// member says of each list whether it counts; nil: all do.
	member []bool
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
	if v := s.views.find(names); v != nil {
		return v
	}
	return s.views.keep(s.newView(slices.Clone(names)))
}

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
		for stage := range v.kinds {
			if l.Stages&verdict.Stage(stage) == 0 {
				continue
			}
			v.kinds[stage] |= sender.KindSet(l.index.segment.Kinds())
			if l.Asked != nil {
				v.asked[stage] = append(v.asked[stage], i)
			}
		}
	}
	return v
}

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

func (k *views) find(names []string) *View {
	kept := k.kept.Load()
	if kept == nil {
		return nil
	}
	for _, v := range *kept {
		if slices.Equal(v.names, names) {
			return v
		}
	}
	return nil
}

// keep keeps a View, or returns the one of the same names that is there already.
func (k *views) keep(v View) *View {
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.find(v.names); other != nil {
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
