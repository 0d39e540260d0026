package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/fleet"
)

// TestFleet plays fleets: two to four gates (the real members, with NATS's real client), some with one
// that only reads, and a model of their broker, which delays, loses and repeats messages, answers reads
// from an older state, cuts gates off, and forgets; gates stop, are killed, and start again. They share
// managed lists, one from a URL, accounts, and a value. Time is false: see broker.
func TestFleet(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a world has one thing to do at a time: it takes a third less
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	run(t, &part{few: 40, draw: drawFleet, play: playFleet})
}

// A fleetMove is a move of this part.
type fleetMove struct {
	text string // empty: time passes
	do   func(w *fleetWorld)
}

func (m fleetMove) String() string { return m.text }

// fleetSetup is the first move: what there is at first.
type fleetSetup struct {
	seed   uint64
	ahead  []time.Duration // the gates' clocks
	size   int             // of the list, in entries
	lists  []string        // that they share
	reader bool            // the last gate only reads
}

func (m fleetSetup) String() string {
	return fmt.Sprintf("%d gates with clocks ahead by %v, %d entries, lists %v, the last one only reads: %v", len(m.ahead), m.ahead, m.size, m.lists, m.reader)
}

// drawFleet draws a world.
func drawFleet(r *rand.Rand) (moves []move) {
	setup := fleetSetup{seed: r.Uint64(), lists: []string{blocked}}
	for range 2 + r.IntN(3) {
		setup.ahead = append(setup.ahead, []time.Duration{0, 0, time.Minute, -time.Minute}[r.IntN(4)])
	}
	if r.IntN(8) == 0 {
		setup.size = 2000 // is not in the version, but in the object store, and edits are differences
	}
	for _, list := range []string{allowed, feed, fleet.AccountsList} {
		if r.IntN(4) == 0 {
			setup.lists = append(setup.lists, list)
		}
	}
	if r.IntN(3) == 0 {
		setup.reader, setup.ahead = true, append(setup.ahead, 0)
	}
	moves = append(moves, setup)
	for i := range 5 + r.IntN(20) {
		if r.IntN(3) > 0 {
			d := drawTime(r, 20*time.Millisecond, time.Second, 10*time.Second)
			moves = append(moves, fleetMove{"", func(*fleetWorld) { time.Sleep(d) }})
		}
		moves = append(moves, drawFleetMove(r, r.IntN(len(setup.ahead)), i))
	}
	return moves
}

// drawTime draws a time below one of some.
func drawTime(r *rand.Rand, most ...time.Duration) time.Duration {
	return 1 + time.Duration(r.Int64N(int64(most[r.IntN(len(most))])))
}

func drawFleetMove(r *rand.Rand, gate, i int) move {
	is := func(do func(w *fleetWorld), format string, args ...any) move {
		return fleetMove{fmt.Sprintf(format, args...), do}
	}
	list := []string{blocked, blocked, allowed, feed, fleet.AccountsList, fleet.AccountsList}[r.IntN(6)] // if it is shared; else blocked
	switch n := r.IntN(100); {
	case n < 35:
		return is(func(w *fleetWorld) { w.add(w.gate(gate), w.shared(list), i) }, "g%d adds e%d to %s", gate, i, list)
	case n < 40:
		number := r.IntN(i + 1)
		return is(func(w *fleetWorld) { w.undo(w.gate(gate), w.shared(list), number) }, "g%d undoes what was last done to e%d of %s", gate, number, list)
	case n < 43:
		back := 1 + r.Uint64N(4)
		return is(func(w *fleetWorld) { w.rollBack(w.gate(gate), back) }, "g%d rolls the list back by %d versions", gate, back)
	case n < 52:
		return is(func(w *fleetWorld) { w.set(w.gate(gate), i) }, "g%d adds t%d to the state", gate, i)
	case n < 60:
		reset, d := r.IntN(2) == 0, drawTime(r, time.Second, 5*time.Second, 30*time.Second, time.Minute)
		return is(func(w *fleetWorld) { w.cut(w.gate(gate), reset, d) }, "g%d is cut off for %v, connections reset: %v", gate, d, reset)
	case n < 63:
		return is(func(w *fleetWorld) { w.end(w.gate(gate).stop) }, "g%d is to stop", gate)
	case n < 67:
		return is(func(w *fleetWorld) { w.gate(gate).start() }, "g%d is to start", gate)
	case n < 73:
		place := []string{"now", "before placing an edit", "after placing an edit", "before taking", "after taking", "placing fails"}[r.IntN(6)]
		return is(func(w *fleetWorld) { w.end(func() { w.gate(gate).crashLater(place) }) }, "g%d is to fail: %s", gate, place)
	case n < 91:
		f := drawFault(r)
		return is(func(w *fleetWorld) { w.plan(w.gate(gate), f) }, "g%d: the next %q %s", gate, f.kind, f.what)
	case n < 94:
		return is(func(w *fleetWorld) { w.b.save() }, "a backup of the broker")
	case n < 96:
		return is(func(w *fleetWorld) { w.restart() }, "the broker restarts")
	}
	what, ago, inFlight := r.IntN(3), drawTime(r, time.Second, 20*time.Second), r.IntN(2) == 0
	return is(func(w *fleetWorld) { w.lose(what, ago, inFlight) }, "the broker %s; while edits are made: %v",
		[]string{"loses all", "gets its backup", fmt.Sprintf("is as it was %v ago", ago)}[what], inFlight)
}

// drawFault draws what happens to a message.
func drawFault(r *rand.Rand) fault {
	f := fault{kind: []string{
		"write spamgate-lists list", "write spamgate-lists list", "write spamgate-lists list", "write spamgate-state", "write spamgate-content", "DIRECT GET KV_spamgate-lists",
		"DIRECT GET", "CONSUMER CREATE", "STREAM INFO", "STREAM MSG GET", "watch KV_spamgate-lists", "watch KV_spamgate-state", "say", "",
		"ask", "write spamgate-leases", connecting, "bytes", "bytes answer", "bytes watch",
	}[r.IntN(20)]}
	late := drawTime(r, 100*time.Millisecond, 8*time.Second)
	switch n := r.IntN(10); {
	case f.kind == connecting:
		f.what, f.place = "stalls", r.IntN(2)
	case strings.HasPrefix(f.kind, "bytes"):
		f.place, f.ends = 1+r.IntN(100), n < 5
		f.what = fmt.Sprintf("loses bytes from the %dth on, and the connection ends: %v", f.place, f.ends)
	case n < 2:
		f.what, f.before = fmt.Sprintf("comes %v late", late), late
	case n < 4:
		f.what, f.after = fmt.Sprintf("is answered %v late", late), late
	case n < 7:
		f.what, f.silent = "is not answered", true
	case n < 8 && r.IntN(2) == 0:
		f.what, f.breaks = "is done, and the connection ends before the answer", true
	case n < 8:
		f.what, f.lost = "is lost", true
	case n < 9 && strings.HasPrefix(f.kind, "DIRECT"):
		f.older = 1 + r.IntN(5)
		f.what = fmt.Sprintf("is answered as before %d writes", f.older)
	default:
		f.what, f.again = "comes twice", true
	}
	return f
}

// A fleetWorld is a fleet that is played.
type fleetWorld struct {
	timedStory
	b      *broker
	gates  []*fleetGate
	edits  sync.WaitGroup
	killed sync.WaitGroup

	// Guarded by mu.
	quiet  time.Time // gates are left alone until then: they put back what was lost
	calm   time.Time // messages, too
	added  map[string]bool
	tokens []string // that were added to the state

	noTokens bool // a value is not promised to outlive what the broker loses while it changes

	looking sync.Mutex // guards what follows, and what was served
	lists   []string
	chains  map[string]*chain
	forgot  time.Time // when the broker has last forgotten leases
}

func (w *fleetWorld) must(err error) {
	if err != nil {
		panic(err)
	}
}

// playFleet plays moves.
func playFleet(w *world, moves []move) (err error) {
	setup := fleetSetup{seed: 1, ahead: []time.Duration{0, 0}, lists: []string{blocked}}
	if len(moves) > 0 {
		if s, ok := moves[0].(fleetSetup); ok {
			setup, moves = s, moves[1:]
		}
	}
	for range 2 { // the library keeps timers of the world before: a sync.Pool forgets at the second collection
		runtime.GC()
	}
	f := &fleetWorld{timedStory: timedStory{world: w}, b: newBroker(setup.seed), lists: setup.lists, chains: map[string]*chain{}, added: map[string]bool{}}
	for _, list := range setup.lists {
		f.chains[list] = &chain{sequences: map[string]uint64{}, digests: map[uint64]string{}, base: map[string]string{}, attempts: map[string]string{}}
	}
	defer func() { err = f.conclude(recover()) }()
	synctest.Test(w.T, func(*testing.T) {
		f.begun = time.Now()
		f.play(setup, moves)
	})
	return nil
}

func (w *fleetWorld) play(setup fleetSetup, moves []move) {
	w.b.tell, w.b.fail, w.b.wrote = w.tell, w.fail, w.wrote
	w.tell("%v", setup)
	for i, ahead := range setup.ahead {
		g := &fleetGate{w: w, name: fmt.Sprintf("g%d", i), ahead: ahead, reads: setup.reader && i == len(setup.ahead)-1, served: map[string]served{}}
		w.gates = append(w.gates, g)
		first := ""
		if i == 0 {
			first = "first@example.net\n" + manyEntries(setup.size)
		}
		g.prepare(first)
	}
	for i, g := range w.gates {
		g.start()
		time.Sleep(3*time.Second + time.Duration(i))
	}
	for _, m := range moves {
		if m.String() != "" {
			w.tell("* %v", m)
		}
		m.(fleetMove).do(w)
		synctest.Wait()
		w.look()
		w.checkFetchers()
	}
	w.finish()
}

// manyEntries returns entries that hardly can be packed.
func manyEntries(n int) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 0))
	for range n {
		fmt.Fprintf(&b, "%016x%016x@example.net\n", r.Uint64(), r.Uint64())
	}
	return b.String()
}

// gate returns a gate. One that shrinking has removed is another one.
func (w *fleetWorld) gate(i int) *fleetGate { return w.gates[i%len(w.gates)] }

func entryOf(number int) string { return fmt.Sprintf("e%d@example.net", number) }

// shared returns a list, or another one that the gates share.
func (w *fleetWorld) shared(list string) string {
	if slices.Contains(w.lists, list) {
		return list
	}
	return blocked
}

func (w *fleetWorld) add(g *fleetGate, list string, number int) {
	what := fmt.Sprintf("adding e%d to %s", number, list)
	switch list {
	case feed:
		g.fetch(number)
	case fleet.AccountsList:
		w.background(g, list, what, func(p *process) error { return p.accounts.AddUser(fmt.Sprintf("e%d", number), "", accounts.Admin, nil) })
	default:
		w.mu.Lock()
		w.added[entryOf(number)] = true
		w.mu.Unlock()
		w.background(g, list, what, func(p *process) error { return g.edit(p, list, with(entryOf(number))) })
	}
}

// undo removes an entry, or puts it back. No content may come twice: of an account it changes the role.
func (w *fleetWorld) undo(g *fleetGate, list string, number int) {
	what := fmt.Sprintf("undoing e%d of %s", number, list)
	switch list {
	case feed:
		g.fetchFails.Store(!g.fetchFails.Load())
	case fleet.AccountsList:
		w.background(g, list, what, func(p *process) error { return p.accounts.SetRole(fmt.Sprintf("e%d", number), accounts.Admin, nil) })
	default:
		w.background(g, list, what, func(p *process) error { return g.edit(p, list, undone(entryOf(number))) })
	}
}

// rollBack brings an earlier content of the list back.
func (w *fleetWorld) rollBack(g *fleetGate, versions uint64) {
	w.background(g, blocked, "rolling back", func(p *process) error {
		w.looking.Lock()
		c := w.chains[blocked]
		want := c.digests[max(c.sequences[c.newest], versions+1)-versions]
		w.looking.Unlock()
		text, err := p.earlier(want)
		if err != nil {
			return err
		}
		return g.edit(p, blocked, func(string) (string, error) { return fmt.Sprintf("%s# back at %v\n", text, time.Since(w.begun)), nil })
	})
}

// background changes a list in the background, which is acknowledged or not.
func (w *fleetWorld) background(g *fleetGate, list, what string, do func(*process) error) {
	p := g.pointer.Load()
	w.edits.Go(func() {
		err := errKilled
		if p.m != nil {
			err = do(p)
		}
		if g.pointer.Load() != p {
			err = errKilled // whatever it says, to nobody
		}
		if err != nil {
			w.tell("%s: %s: %v", g.name, what, err)
			return
		}
		w.tell("%s: %s is acknowledged", g.name, what)
		if list != "" {
			w.acknowledged(g, p, list, what)
		}
	})
}

// stateKey is that of the value that the gates share.
var stateKey = fleet.StateKey("pin", blocked)

// set adds a token to the shared value.
func (w *fleetWorld) set(g *fleetGate, number int) {
	token := fmt.Sprintf("t%d", number)
	w.background(g, "", "setting "+token, func(p *process) error {
		err := p.m.SetState(context.Background(), stateKey, func(old json.RawMessage) (json.RawMessage, error) {
			var tokens []string
			_ = json.Unmarshal(old, &tokens)
			if !slices.Contains(tokens, token) {
				tokens = append(tokens, token)
			}
			return json.Marshal(tokens)
		})
		if err == nil && g.pointer.Load() == p {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tokens = append(w.tokens, token)
		}
		return err
	})
}

// end ends something, unless gates are to be left alone: the broker has just lost something, and who
// has it is to put it back.
func (w *fleetWorld) end(do func()) {
	w.mu.Lock()
	quiet := time.Now().Before(w.quiet)
	w.mu.Unlock()
	if !quiet {
		do()
	}
}

func (w *fleetWorld) cut(g *fleetGate, reset bool, d time.Duration) {
	w.end(func() {
		heal := w.b.cut(g.name, reset)
		w.edits.Go(func() {
			time.Sleep(d)
			w.tell("%s is no longer cut off", g.name)
			heal()
		})
	})
}

// plan lets something happen to a message, unless all is to be calm.
func (w *fleetWorld) plan(g *fleetGate, f fault) {
	w.mu.Lock()
	calm := time.Now().Before(w.calm)
	w.mu.Unlock()
	if !calm {
		w.b.plan(g.name, f)
	}
}

// restart restarts the broker, which forgets what it has only in memory.
func (w *fleetWorld) restart() {
	w.looking.Lock()
	w.forgot = time.Now()
	w.looking.Unlock()
	w.b.restart(w.b.streams)
}

// lose puts something else in the place of what the broker has: nothing, its backup, or an older state.
//
// What only a gate has that cannot reach the others soon would be lost. So either all gates agree before,
// run, are not cut off, and stay so for a while: then nothing is lost. Or edits are in flight: see
// chain.endanger.
func (w *fleetWorld) lose(what int, ago time.Duration, inFlight bool) {
	if !inFlight {
		w.edits.Wait()
		w.agree()
	}
	streams := map[string]*stream{}
	switch what {
	case 1:
		if streams = w.b.backup; streams == nil {
			return
		}
	case 2:
		streams = w.b.before(time.Now().Add(-ago))
	}
	w.mu.Lock()
	w.quiet = time.Now().Add(time.Minute)
	if inFlight {
		w.calm = w.quiet
	}
	w.mu.Unlock()
	w.spare()
	w.looking.Lock()
	w.forgot = time.Now()
	for _, list := range w.lists {
		w.chains[list].lost = true
		if inFlight {
			w.endanger(list, streams["KV_spamgate-lists"])
		}
	}
	w.looking.Unlock()
	if inFlight {
		w.mu.Lock()
		w.noTokens = true
		w.mu.Unlock()
		w.b.forgive()
	}
	w.b.restart(streams)
}

// spare forgets plans to kill gates.
func (w *fleetWorld) spare() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gates {
		g.crashAt = ""
	}
}

// finish ends the world, and looks at what is left.
func (w *fleetWorld) finish() {
	w.edits.Wait()
	w.b.forgive()
	w.spare()
	w.agree()
	time.Sleep(10 * time.Second) // they stay so
	if !w.agreed() {
		w.fail("the gates agree no more")
	}
	for _, list := range w.lists {
		w.tell("all have sequence %d of %s", w.gates[0].served[list].sequence, list)
		w.checkEdits(list)
	}
	w.checkState()
	w.awaitFetcher()
	w.checkWatches()
	for _, g := range w.gates {
		g.stop()
	}
	w.killed.Wait()
	w.b.end()
	time.Sleep(time.Minute) // what ends by a time has ended
	synctest.Wait()
	w.checkGoroutines()
}
