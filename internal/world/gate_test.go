package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/atomicfile"
)

// TestGate plays whole gates as spamgate serve runs them: clients send to it, its next hops refuse,
// stall, lie and die, the network delays and cuts, keepers edit its lists, and it is reloaded, handed
// over, killed and started again. Only the network, the next hops, signals and time are false.
//
// What is watched: see gatewatch_test.go.
func TestGate(t *testing.T) { run(t, &part{few: 40, draw: drawGate, play: playGate}) }

// A gateMove is a move of this part.
type gateMove struct {
	after time.Duration // the begin of the world
	text  string
	do    func(w *gateWorld)
}

func (m gateMove) String() string { return m.text }

// gateSetup is the first move: what there is at first.
type gateSetup struct {
	seed    uint64
	clean   bool // nothing fails
	hops    int
	balance string
	chunks  []bool // which next hops offer CHUNKING
}

func (m gateSetup) String() string {
	return fmt.Sprintf("%d next hops (%s, CHUNKING: %v), nothing fails: %t", m.hops, m.balance, m.chunks, m.clean)
}

// drawGate draws a world.
func drawGate(r *rand.Rand) []move {
	setup := gateSetup{seed: r.Uint64(), clean: r.IntN(4) == 0, hops: 1 + r.IntN(3), balance: []string{"priority", "round_robin"}[r.IntN(2)]}
	for range setup.hops {
		setup.chunks = append(setup.chunks, r.IntN(2) == 0)
	}
	var moves []gateMove
	length := []time.Duration{2 * time.Second, 30 * time.Second, 2 * time.Minute}[r.IntN(3)]
	for i := range 4 + r.IntN(20) {
		m := drawGateMove(r, setup, i)
		m.after = time.Duration(r.Int64N(int64(length)))
		moves = append(moves, m)
	}
	slices.SortStableFunc(moves, func(a, b gateMove) int { return cmp.Compare(a.after, b.after) })
	all := []move{setup}
	for _, m := range moves {
		all = append(all, m)
	}
	return all
}

func drawGateMove(r *rand.Rand, setup gateSetup, i int) gateMove {
	is := func(do func(w *gateWorld), format string, args ...any) gateMove {
		return gateMove{0, fmt.Sprintf(format, args...), do}
	}
	n := r.IntN(100)
	if setup.clean {
		n = r.IntN(72)
	}
	switch {
	case n < 45:
		p := drawClient(r, setup.clean, i)
		return is(func(w *gateWorld) { w.client(p) }, "%v", p)
	case n < 62:
		return drawKeeper(r, i)
	case n < 67:
		variant := r.IntN(3)
		return is(func(w *gateWorld) { w.reload(variant) }, "the configuration %d is loaded", variant)
	case n < 72:
		return is(func(w *gateWorld) { w.handOver() }, "handover")
	case n < 76:
		return is(func(w *gateWorld) { w.crash() }, "the gate is killed, and starts again")
	case n < 80:
		number, how, d := r.IntN(setup.hops), []string{"refused", "silent"}[r.IntN(2)], drawTime(r, 2*time.Second, time.Minute)
		return is(func(w *gateWorld) { w.lose(number, how, d) }, "h%d: connections are %s for %v", number, how, d)
	}
	number, f := r.IntN(setup.hops), drawHopFault(r)
	return is(func(w *gateWorld) { w.hop(number).plan(f) }, "h%d %v next", number, f)
}

// drawClient draws what a client does.
func drawClient(r *rand.Rand, clean bool, i int) clientPlan {
	p := clientPlan{name: fmt.Sprintf("c%d", i), addr: fmt.Sprintf("203.0.113.%d:%d", r.IntN(3), 40000+i), style: []string{"plain", "pipelining", "BDAT"}[r.IntN(3)]}
	if r.IntN(3) == 0 {
		p.slow = drawTime(r, 100*time.Millisecond, 2*time.Second, 5*time.Second)
	}
	for j := range 1 + r.IntN(3) {
		m := &attempt{id: fmt.Sprintf("m%dx%d", i, j), from: r.IntN(6), size: []int{100, 1000, 1000, 300_000}[r.IntN(4)]}
		if m.header = m.from; r.IntN(3) == 0 {
			m.header = r.IntN(6)
		}
		for _, to := range []string{"ann@rcpt.example", "bob@rcpt.example", "nobody@rcpt.example", "later@rcpt.example", "postmaster@rcpt.example", "eve@elsewhere.example"} {
			if r.IntN(4) == 0 || len(m.to) == 0 && strings.HasPrefix(to, "bob") {
				m.to = append(m.to, to)
			}
		}
		p.messages = append(p.messages, m)
	}
	if !clean && r.IntN(3) == 0 {
		p.abort, p.resets = []string{"MAIL", "RCPT", "DATA", "half", "end"}[r.IntN(5)], r.IntN(2) == 0
	}
	if !clean && r.IntN(8) == 0 {
		p.cut = 1 + r.IntN(400)
	}
	return p
}

func (p clientPlan) String() string {
	text := fmt.Sprintf("%s comes from %s, %s", p.name, p.addr, p.style)
	if p.slow > 0 {
		text += fmt.Sprintf(", slow (%v)", p.slow)
	}
	for _, m := range p.messages {
		text += fmt.Sprintf("; %s, header of d%d, to %v, %d bytes", m.sender(), m.header, m.to, m.size)
	}
	if p.abort != "" {
		text += fmt.Sprintf("; leaves at %s, by a reset: %t", p.abort, p.resets)
	}
	if p.cut > 0 {
		text += fmt.Sprintf("; cut after %d bytes", p.cut)
	}
	return text
}

// drawHopFault draws what a next hop does wrong.
func drawHopFault(r *rand.Rand) hopFault {
	f := hopFault{stage: []string{"greeting", "EHLO", "MAIL", "RCPT", "DATA", "body", "end", "end", "end", "RSET", "QUIT"}[r.IntN(11)]}
	switch f.what = []string{"says", "says", "closes", "resets", "has it, and closes", "is late", "is silent"}[r.IntN(7)]; f.what {
	case "says":
		f.text = []string{"451 4.3.0 Not now", "550 5.7.1 No", "421 4.3.2 Going down", "250 2.0.0 Ok\n250 2.0.0 And more", "Hello?", "502 5.5.1 What"}[r.IntN(6)]
	case "is late":
		f.late = drawTime(r, time.Second, 20*time.Second, 15*time.Minute)
	}
	return f
}

// A gateWorld is a gate that is played, with all around it.
type gateWorld struct {
	timedStory
	setup   gateSetup
	net     *network
	hops    []*hop
	variant atomic.Int32 // of the configuration
	crashed atomic.Bool
	blocked gateList // a file
	managed gateList
	changes []gateChange
	plans   []clientPlan
	clients sync.WaitGroup
	serving sync.WaitGroup // of next hops
	healed  chan struct{}  // closed when nothing fails any more
	work    chan func()    // for the keeper, who does one thing at a time
	busy    sync.WaitGroup // of the keeper

	// Guarded by mu.
	gates  []*gateProcess // the last one is in charge
	log    strings.Builder
	copies map[string][]delivery
}

var gateIDs = regexp.MustCompile(`\b[A-Z2-7]{12}\b`)

// plain removes from a reply what chance has made.
func (w *gateWorld) plain(reply string) string { return gateIDs.ReplaceAllString(reply, "*") }

func (w *gateWorld) hop(i int) *hop { return w.hops[i%len(w.hops)] }

// playGate plays moves.
func playGate(w *world, moves []move) (err error) {
	setup := gateSetup{1, false, 1, "priority", []bool{true}}
	if len(moves) > 0 {
		if s, ok := moves[0].(gateSetup); ok {
			setup, moves = s, moves[1:]
		}
	}
	atomicfile.Hook = func(c atomicfile.Call) error {
		if c.Op == "watch" {
			return fmt.Errorf("files are only polled here") // events come when they like
		}
		return c.Do()
	}
	defer func() { atomicfile.Hook = nil }()
	g := &gateWorld{timedStory: timedStory{world: w}, setup: setup, net: newNetwork(setup.seed), copies: map[string][]delivery{}}
	w.tell("%v", setup)
	defer func() {
		err = g.conclude(recover())
		if *oneSeed != 0 {
			w.Log("\n" + g.log.String())
		}
	}()
	noon := time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)
	synctest.Test(w.T, func(*testing.T) {
		time.Sleep(time.Until(noon)) // files that are changed now count as old
		g.begun = time.Now()
		g.net.begun = g.begun
		g.play(moves)
	})
	return nil
}

func (w *gateWorld) play(moves []move) {
	w.net.clean = w.setup.clean
	for i := range w.setup.hops {
		h := &hop{w: w, name: fmt.Sprintf("h%d", i), addr: fmt.Sprintf("198.51.100.%d:25", i+1), offers: []string{"PIPELINING", "8BITMIME", "SIZE 1000000", "ENHANCEDSTATUSCODES"}}
		if w.setup.chunks[i] {
			h.offers = append(h.offers, "CHUNKING")
		}
		w.hops = append(w.hops, h)
		w.net.servers[h.addr] = func(e *end) { w.serving.Go(func() { h.serve(e) }) }
	}
	check(os.Mkdir(filepath.Join(w.dir, "lists"), 0o700))
	check(os.Mkdir(filepath.Join(w.dir, "state"), 0o700))
	w.blocked.versions, w.blocked.onDisk = []*listVersion{{domains: []int{0}, sure: w.begun}}, []int{0}
	w.managed.versions = []*listVersion{{sure: w.begun}}
	w.writeFile(listText([]int{0}, "at first"))
	if w.start(filepath.Join(w.dir, "state")); w.err != nil {
		return
	}
	w.work, w.healed = make(chan func(), 100), make(chan struct{})
	go func() {
		for do := range w.work {
			do()
			w.busy.Done()
		}
	}()
	for _, m := range moves {
		m := m.(gateMove)
		time.Sleep(time.Until(w.begun.Add(m.after)))
		synctest.Wait()
		w.tell("* %s", m.text)
		m.do(w)
	}
	w.finish()
}

// client lets a client come.
func (w *gateWorld) client(p clientPlan) {
	for i, m := range p.messages { // a world that is shrunk has the moves again
		fresh := attempt{id: m.id, from: m.from, header: m.header, to: m.to, size: m.size}
		p.messages = slices.Clone(p.messages)
		p.messages[i] = &fresh
	}
	w.plans = append(w.plans, p)
	w.clients.Go((&gateClient{w: w, plan: p}).run)
}

// lose makes a next hop unreachable for a while.
func (w *gateWorld) lose(number int, how string, d time.Duration) {
	h := w.hop(number)
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	w.net.lost[h.addr] = how
	time.AfterFunc(d, func() {
		w.net.mu.Lock()
		defer w.net.mu.Unlock()
		delete(w.net.lost, h.addr)
	})
}
