package world

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// wrote watches what gates write to the broker.
func (w *fleetWorld) wrote(gate, kind string, value []byte) {
	var v struct {
		Sequence uint64
		SHA256   string
		Value    json.RawMessage
	}
	_ = json.Unmarshal(value, &v)
	w.tell("%s: %s: sequence %d %.8s%s", gate, kind, v.Sequence, v.SHA256, v.Value)
	if v.SHA256 == "" {
		return
	}
	w.looking.Lock()
	defer w.looking.Unlock()
	if other := w.versions[v.Sequence]; other != "" && other != v.SHA256 && !w.forgot {
		w.fail("two versions have the sequence %d: %.8s and %.8s", v.Sequence, other, v.SHA256)
	}
	w.versions[v.Sequence], w.sequences[v.SHA256] = v.SHA256, v.Sequence
}

// look watches what a gate serves: a version that the fleet has, and never an older one than before
// unless the broker has lost something.
func (w *fleetWorld) look(gate string) {
	w.looking.Lock()
	defer w.looking.Unlock()
	for _, g := range w.gates {
		if g.name == gate {
			g.look()
		}
	}
}

func (g *fleetGate) look() {
	info, err := os.Stat(g.pointer.Load().path())
	if err != nil {
		g.w.fail("%s has no list: %v", g.name, err)
		return
	}
	if s := g.served.info; s != nil && os.SameFile(s, info) && s.ModTime().Equal(info.ModTime()) && s.Size() == info.Size() {
		return
	}
	sum := sha256.Sum256([]byte(g.text()))
	sequence, known := g.w.sequences[hex.EncodeToString(sum[:])]
	switch before := g.served.sequence; {
	case !known && before > 0:
		g.w.fail("%s serves %x, which the fleet never had", g.name, sum[:4])
	case sequence < before && !g.w.forgot:
		g.w.fail("%s serves sequence %d after %d", g.name, sequence, before)
	}
	g.served = served{info, sequence}
}

// agree starts all gates, and waits until they agree.
func (w *fleetWorld) agree() {
	for range 600 {
		for _, g := range w.gates {
			g.start()
		}
		if time.Sleep(time.Second); w.agreed() {
			return
		}
	}
	for _, g := range w.gates {
		if m := g.pointer.Load().m; m != nil {
			s := m.Status()
			w.tell("%s: serves %d, connected %v, trouble %q, %+v", g.name, g.served.sequence, s.Connected, s.Trouble, s.Lists)
		}
	}
	w.fail("the gates do not agree within 10 minutes")
}

// agreed reports whether all gates serve the same, the broker's newest version, and have the same
// shared value.
func (w *fleetWorld) agreed() bool {
	all := map[string]bool{}
	for _, g := range w.gates {
		m := g.pointer.Load().m
		if m == nil {
			return false
		}
		s := m.Status()
		l := s.Lists[0]
		if !s.Connected || l.Behind || l.Error != "" || l.Sequence == 0 {
			return false
		}
		all[fmt.Sprint(l.Sequence, l.SHA256, g.text(), string(m.State(stateKey)))] = true
		if !w.b.has("KV_spamgate-lists", "*.*.list."+blocked, l.SHA256) || !w.b.has("KV_spamgate-state", "*.*."+stateKey, string(m.State(stateKey))) {
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
func (w *fleetWorld) checkEdits() {
	list, state := w.gates[0].text(), string(w.gates[0].pointer.Load().m.State(stateKey))
	for number := range 100 {
		entry := entryOf(number)
		n := strings.Count("\n"+list, "\n"+entry+"\n")
		switch {
		case n > 1:
			w.fail("%s is there %d times", entry, n)
		case w.removed[entry] && n > 0:
			w.fail("%s is there, although its removal was acknowledged", entry)
		case w.added[entry] && !w.removed[entry] && n == 0 && !strings.Contains(list, "# "+entry+" removed"):
			w.fail("%s is not there, although it was acknowledged", entry)
		}
	}
	if !strings.Contains(list, "first@example.net\n") {
		w.fail("the first entry is lost")
	}
	for _, token := range w.tokens {
		if !strings.Contains(state, `"`+token+`"`) {
			w.fail("the shared value %s does not have %s, which was acknowledged", state, token)
		}
	}
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
