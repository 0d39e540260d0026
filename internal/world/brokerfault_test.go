package world

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A fault is what happens to the next message of a kind that a gate sends, or that a watch
// brings it.
type fault struct {
	gate, kind string // the beginning of what kindOf returns
	what       string

	before, after time.Duration // it comes late; the answer comes late
	lost          bool          // it never comes
	silent        bool          // it comes, and the answer is lost
	breaks        bool          // it comes, and the connection ends
	older         int           // it is answered as before so many writes
	again         bool          // it comes twice
	place         int           // from where bytes of it are lost; of a handshake, where it stalls
	ends          bool          // and the connection ends
}

// connecting is the kind of a handshake. One that stalls fails in its time.
const connecting = "connecting"

// times returns how often a message comes.
func (f *fault) times() int {
	switch {
	case f.lost:
		return 0
	case f.again:
		return 2
	}
	return 1
}

// fault returns what happens to a message.
func (b *broker) fault(gate, kind string) fault {
	i := slices.IndexFunc(b.faults, func(f fault) bool { return f.gate == gate && strings.HasPrefix(kind, f.kind) })
	if i < 0 {
		return fault{}
	}
	f := b.faults[i]
	b.faults = slices.Delete(b.faults, i, i+1)
	b.tell("%s: %s: it %s", gate, kind, f.what)
	return f
}

// plan lets a fault happen to a gate.
func (b *broker) plan(gate string, f fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.gate = gate
	b.faults = append(b.faults, f)
}

// forgive forgets faults that have not happened.
func (b *broker) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
}

// cut cuts a gate off from the broker until the returned function is called. With reset its
// connections end at once; else nothing passes, and it comes later.
func (b *broker) cut(gate string, reset bool) (heal func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cutOff[gate]++
	if reset {
		b.resetLines(gate)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.cutOff[gate]--; b.cutOff[gate] > 0 {
			return
		}
		for _, l := range b.lines {
			if l.gate == gate {
				l.heal()
			}
		}
		b.lines = slices.DeleteFunc(b.lines, func(l *line) bool { return l.dead })
	}
}

// resetLines ends connections: those of a gate, or all.
func (b *broker) resetLines(gate string) {
	for _, l := range b.lines {
		if gate == "" || l.gate == gate {
			l.reset()
		}
	}
}

// kill ends what a process of a gate has to do with the broker.
func (b *broker) kill(d *door) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.shut = true
	b.arrivals = slices.DeleteFunc(b.arrivals, func(a arrival) bool { return a.gate == d.gate }) // of this instant: it may be killed before or after
	b.resetLines(d.gate)
}

// save keeps a copy of what is on the disks.
func (b *broker) save() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backup = copied(b.streams)
}

// copied returns a copy of those streams that are on a disk.
func copied(streams map[string]*stream) map[string]*stream {
	all := map[string]*stream{}
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		if s := streams[name]; s.age == 0 {
			c := *s
			c.posts, c.past, c.readers = slices.Clone(s.posts), slices.Clone(s.past), nil
			all[name] = &c
		}
	}
	return all
}

// before returns what was on the disks at an instant. Contents are there for a while after nobody needs
// them.
func (b *broker) before(instant time.Time) map[string]*stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := copied(b.streams)
	for _, s := range all {
		later := func(p *post) bool { return p.instant.After(instant) }
		s.past, s.last = slices.DeleteFunc(s.past, later), s.first
		for _, p := range s.past {
			s.last = p.sequence
		}
		s.posts = slices.Clone(s.past)
		if s.perKey > 0 {
			s.posts = nil
			for _, p := range s.past {
				s.keep(p)
			}
		}
	}
	return all
}

// restart ends all connections. What counts afterwards is what some streams have on the disk.
func (b *broker) restart(streams map[string]*stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resetLines("")
	b.restarts++
	b.streams = copied(streams)
}

// end lets nothing happen any more.
func (b *broker) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}
