package world

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"spamgate/internal/fleet"
)

// A chain is what the fleet has had of a list: versions, of which each is an edit of the one before.
type chain struct {
	sequences map[string]uint64 // of versions, by their digests
	digests   map[uint64]string // the reverse
	base      map[string]string // digests of the versions before
	attempts  map[string]string // digests of what edits would make, and of what they change
	newest    string            // the digest of the version that the broker has
	acked     []acked

	lost   bool   // the broker has lost something of it
	forked bool   // that was while edits were in flight
	atRisk bool   // and acknowledged edits may be lost: those
	safe   uint64 // whose sequences are higher than this one
}

// acked is an edit that was acknowledged.
type acked struct{ what, digest string }

// tries notes what an edit would make of a list.
func (w *fleetWorld) tries(p *process, e fleet.Edit) {
	digest, old := hex.EncodeToString(e.SHA256[:]), digestOf(p.text(e.List))
	w.looking.Lock()
	defer w.looking.Unlock()
	p.tried[e.List] = digest
	w.chains[e.List].attempts[digest] = old
}

// wrote watches what gates write to the broker.
func (w *fleetWorld) wrote(gate, kind string, value []byte) {
	var v struct {
		Name         string // of a content
		List         string
		Sequence     uint64
		SHA256, Base string
		Value        json.RawMessage
	}
	_ = json.Unmarshal(value, &v)
	if v.Name != "" {
		w.stored(gate, strings.TrimPrefix(v.Name, "full."))
		return
	}
	if v.List == fleet.AccountsList { // has secrets, which are not of the seed
		w.tell("%s: %s: sequence %d", gate, kind, v.Sequence)
	} else {
		w.tell("%s: %s: sequence %d %.8s%s", gate, kind, v.Sequence, v.SHA256, v.Value)
	}
	w.looking.Lock()
	defer w.looking.Unlock()
	c := w.chains[v.List]
	if c == nil {
		return
	}
	_, known := c.sequences[v.SHA256]
	old, isEdit := c.attempts[v.SHA256]
	head := c.digests[uint64(len(c.digests))]
	switch {
	case isEdit && old != v.Base:
		w.fail("%s: an edit of %.8s is stored as one of %.8s", v.List, old, v.Base)
	case known && v.SHA256 != c.newest && !c.lost && !w.b.garbled:
		w.fail("%s: sequence %d is stored again, over %d", v.List, v.Sequence, c.sequences[c.newest])
	case !known && !c.forked && (v.Base != head || v.Sequence != c.sequences[head]+1):
		w.fail("%s: sequence %d is stored as an edit of %.8s, and the fleet had %d, %.8s", v.List, v.Sequence, v.Base, c.sequences[head], head)
	}
	c.newest = v.SHA256
	if !known {
		c.digests[v.Sequence], c.sequences[v.SHA256], c.base[v.SHA256] = v.SHA256, v.Sequence, v.Base
	}
}

// stored watches that no content is stored as a whole that the fleet has already.
func (w *fleetWorld) stored(gate, digest string) {
	w.looking.Lock()
	defer w.looking.Unlock()
	w.tell("%s stores %.8s as a whole", gate, digest)
	for _, list := range w.lists {
		if c := w.chains[list]; c.sequences[digest] > 0 && !c.lost && !w.b.garbled {
			w.fail("%s stores sequence %d of %s as a whole, which the fleet has", gate, c.sequences[digest], list)
		}
	}
}

// acknowledged watches that the fleet has an edit, and that the gate serves it.
func (w *fleetWorld) acknowledged(g *fleetGate, p *process, list, what string) {
	w.looking.Lock()
	defer w.looking.Unlock()
	c, digest := w.chains[list], p.tried[list]
	sequence, known := c.sequences[digest]
	if !known {
		w.fail("%s: %s is acknowledged, and the fleet does not have it", g.name, what)
	}
	if serves := c.sequences[digestOf(p.text(list))]; serves < sequence {
		w.fail("%s: %s is acknowledged, and the gate serves sequence %d, not %d", g.name, what, serves, sequence)
	}
	if g.reads {
		w.fail("%s: %s is acknowledged, and it only reads", g.name, what)
	}
	c.acked = append(c.acked, acked{g.name + ": " + what, digest})
}

// endanger notes which acknowledged edits of a list may be lost if the broker loses something now. None
// may if a gate that has the newest version is connected, and no gate has just the version that comes
// back: such a gate cannot know that there was a newer one.
func (w *fleetWorld) endanger(list string, back *stream) {
	c := w.chains[list]
	c.forked = true
	var highest, safe uint64
	for _, edit := range c.acked {
		highest = max(highest, c.sequences[edit.digest])
	}
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	for _, g := range w.gates {
		has := g.served[list].sequence
		highest = max(highest, has)
		if g.pointer.Load().m != nil && w.b.cutOff[g.name] == 0 && !g.reads {
			safe = max(safe, has)
		}
	}
	risk := safe < highest
	if back != nil {
		var v fleet.Version
		if p := newest(back.posts, "$KV.*.*."+strings.ReplaceAll(list, "@", "=40")); p != nil {
			_ = json.Unmarshal(p.data, &v)
		}
		for _, g := range w.gates {
			if has := g.served[list].sequence; has == v.Sequence && has < highest {
				risk, safe = true, min(safe, has)
			}
		}
	}
	if risk && (!c.atRisk || safe < c.safe) {
		c.atRisk, c.safe = true, safe
		w.tell("edits of %s after sequence %d may be lost", list, safe)
	}
}

// look watches what the gates serve: versions that the fleet has, and never an older one than before.
func (w *fleetWorld) look() {
	w.looking.Lock()
	defer w.looking.Unlock()
	for _, g := range w.gates {
		for _, list := range w.lists {
			g.look(list)
		}
	}
}

// lookNow is look when a list has just been replaced.
func (p *process) lookNow(list string) {
	p.g.w.looking.Lock()
	defer p.g.w.looking.Unlock()
	if p.g.pointer.Load() == p {
		p.g.look(list)
	}
}

func (g *fleetGate) look(list string) {
	p, before := g.pointer.Load(), g.served[list]
	info, err := os.Stat(p.list(list).Path)
	if err != nil {
		if before.sequence > 0 {
			g.w.fail("%s has no list %s: %v", g.name, list, err)
		}
		return
	}
	if s := before.info; s != nil && os.SameFile(s, info) && s.ModTime().Equal(info.ModTime()) && s.Size() == info.Size() {
		return
	}
	digest := digestOf(p.text(list))
	sequence, known := g.w.chains[list].sequences[digest]
	switch {
	case digest == g.own:
		sequence = max(sequence, before.sequence)
	case !known && before.sequence > 0:
		g.w.fail("%s serves %.8s of %s, which the fleet never had", g.name, digest, list)
	case sequence < before.sequence:
		g.w.fail("%s serves sequence %d of %s after %d", g.name, sequence, list, before.sequence)
	}
	g.served[list] = served{info, digest, sequence}
}

// agree starts all gates, and waits until they agree.
func (w *fleetWorld) agree() {
	for range 600 {
		for _, g := range w.gates {
			g.start()
		}
		time.Sleep(time.Second)
		w.look()
		if w.checkFetchers(); w.agreed() {
			return
		}
	}
	for _, g := range w.gates {
		if m := g.pointer.Load().m; m != nil {
			s := m.Status()
			w.tell("%s: connected %v, trouble %q, %+v", g.name, s.Connected, s.Trouble, s.Lists)
		}
	}
	w.fail("the gates do not agree within 10 minutes")
}

// agreed reports whether all gates serve the same, the broker's newest versions, and have the same
// shared value.
func (w *fleetWorld) agreed() bool {
	all := map[string]bool{}
	for _, g := range w.gates {
		p := g.pointer.Load()
		if p.m == nil {
			return false
		}
		s, state := p.m.Status(), string(p.m.State(stateKey))
		what := state
		for _, l := range s.Lists {
			if l.Name == feed && l.Sequence == 0 && w.chains[feed].newest == "" {
				continue // nobody has fetched it yet
			}
			digest := digestOf(p.text(l.Name))
			if !s.Connected || l.Behind || l.Error != "" || l.Sequence == 0 || digest != l.SHA256 || digest != w.chains[l.Name].newest {
				return false
			}
			what += fmt.Sprint(" ", l.Sequence, digest)
		}
		if all[what] = true; !w.b.has("KV_spamgate-state", "*.*."+stateKey, state) {
			return false
		}
	}
	return len(all) == 1
}

// has reports whether the newest value of a key has a text.
func (b *broker) has(name, subject, text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == "" {
		return true
	}
	s := b.streams[name]
	if s == nil {
		return false
	}
	p := newest(s.posts, subject)
	return p != nil && strings.Contains(string(p.data), text)
}

// checkEdits checks that each acknowledged edit is there, once.
func (w *fleetWorld) checkEdits(list string) {
	c, there := w.chains[list], map[string]bool{}
	text := w.gates[0].pointer.Load().text(list)
	for digest := digestOf(text); digest != "" && !there[digest]; digest = c.base[digest] {
		there[digest] = true
	}
	for _, edit := range c.acked {
		if !there[edit.digest] && !(c.atRisk && c.sequences[edit.digest] > c.safe) {
			w.fail("%s was acknowledged as sequence %d, and is lost", edit.what, c.sequences[edit.digest])
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(w.added)) {
		if n := strings.Count("\n"+text, "\n"+entry+"\n"); n > 1 {
			w.fail("%s is there %d times", entry, n)
		}
	}
	if list == blocked && !strings.Contains(text, "first@example.net\n") {
		w.fail("the first entry is lost")
	}
}

// checkState checks that the shared value has each token that was acknowledged.
func (w *fleetWorld) checkState() {
	state := string(w.gates[0].pointer.Load().m.State(stateKey))
	for _, token := range w.tokens {
		if !w.noTokens && !strings.Contains(state, `"`+token+`"`) {
			w.fail("the shared value %s does not have %s, which was acknowledged", state, token)
		}
	}
}

// fetchers returns the gates that fetch the list from the URL for all.
func (w *fleetWorld) fetchers() (names []string) {
	if !slices.Contains(w.lists, feed) {
		return nil
	}
	for _, g := range w.gates {
		if m := g.pointer.Load().m; m != nil && m.Status().Connected && m.Fetches(feed) {
			names = append(names, g.name)
		}
	}
	return names
}

// checkFetchers checks that at most one gate fetches the list from the URL, unless the broker has lately
// forgotten which one does.
func (w *fleetWorld) checkFetchers() {
	if names := w.fetchers(); len(names) > 1 && (w.forgot.IsZero() || time.Since(w.forgot) > 30*time.Second) {
		w.fail("the list from a URL is fetched by %v", names)
	}
}

// awaitFetcher waits until one gate fetches the list from the URL.
func (w *fleetWorld) awaitFetcher() {
	if !slices.Contains(w.lists, feed) {
		return
	}
	for _, g := range w.gates {
		g.fetchFails.Store(false)
	}
	for range 400 { // a gate leaves it to others for 5 minutes
		if names := w.fetchers(); len(names) == 1 {
			return
		}
		time.Sleep(time.Second)
	}
	w.fail("the list from a URL is fetched by %v", w.fetchers())
}

// checkWatches checks that each gate watches a bucket once.
func (w *fleetWorld) checkWatches() {
	w.b.mu.Lock()
	watches := map[string]int{}
	for name, s := range w.b.streams {
		for _, r := range s.readers {
			if len(w.b.listeners(r.deliver)) > 0 {
				watches[r.gate+" "+name]++
			}
		}
	}
	for _, l := range w.b.lines {
		for _, t := range l.topics {
			if !strings.HasPrefix(t.subject, "_INBOX.") {
				watches[l.gate+" "+t.subject]++
			}
		}
	}
	w.b.mu.Unlock()
	for what, n := range watches {
		if n > 1 {
			w.fail("%s has %d watches", what, n)
		}
	}
}

// checkGoroutines checks that no goroutine is left of the world. One that is ends it with a panic.
func (w *fleetWorld) checkGoroutines() {
	for _, stack := range strayGoroutines() {
		w.fail("a goroutine is left:\n%s", stack)
	}
}

var bubble = regexp.MustCompile(`synctest bubble [0-9]+\b`)

// strayGoroutines returns the stacks of the goroutines of a world, but for its own.
func strayGoroutines() (stray []string) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)] // its own is the first
	own := bubble.FindString(string(stacks))
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if bubble.FindString(stack) == own && !strings.Contains(stack, "strayGoroutines") && !strings.Contains(stack, "ynctestTest") && !strings.Contains(stack, "synctest.Test") {
			stray = append(stray, stack)
		}
	}
	return stray
}
