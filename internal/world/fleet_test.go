package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/fleet"
)

// TestFleet plays fleets: two to four gates (the real members, with NATS's real client) and a model
// of their broker, which delays, loses and repeats messages, answers reads from an older state, cuts
// gates off, and forgets; gates stop, are killed, and start again. Time is false: see broker.
func TestFleet(t *testing.T) { run(t, &part{few: 40, draw: drawFleet, play: playFleet}) }

// A fleetMove is a move of this part.
type fleetMove struct {
	text string // empty: time passes
	do   func(w *fleetWorld)
}

func (m fleetMove) String() string { return m.text }

// fleetSetup is the first move: what there is at first.
type fleetSetup struct {
	seed  uint64
	ahead []time.Duration // the gates' clocks
	size  int             // of the list, in entries
}

func (m fleetSetup) String() string {
	return fmt.Sprintf("%d gates with clocks ahead by %v, %d entries", len(m.ahead), m.ahead, m.size)
}

// drawFleet draws a world.
func drawFleet(r *rand.Rand) (moves []move) {
	setup := fleetSetup{seed: r.Uint64()}
	for range 2 + r.IntN(3) {
		setup.ahead = append(setup.ahead, []time.Duration{0, 0, time.Minute, -time.Minute}[r.IntN(4)])
	}
	if r.IntN(8) == 0 {
		setup.size = 2000 // is not in the version, but in the object store, and edits are differences
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
	switch n := r.IntN(100); {
	case n < 35:
		return is(func(w *fleetWorld) { w.add(w.gate(gate), i) }, "g%d adds e%d", gate, i)
	case n < 42:
		number := r.IntN(i + 1)
		return is(func(w *fleetWorld) { w.remove(w.gate(gate), number) }, "g%d removes e%d", gate, number)
	case n < 52:
		return is(func(w *fleetWorld) { w.set(w.gate(gate), i) }, "g%d adds t%d to the state", gate, i)
	case n < 60:
		reset, d := r.IntN(2) == 0, drawTime(r, time.Second, 5*time.Second, 30*time.Second)
		return is(func(w *fleetWorld) { w.cut(w.gate(gate), reset, d) }, "g%d is cut off for %v, connections reset: %v", gate, d, reset)
	case n < 63:
		return is(func(w *fleetWorld) { w.end(w.gate(gate).stop) }, "g%d is to stop", gate)
	case n < 67:
		return is(func(w *fleetWorld) { w.gate(gate).start() }, "g%d is to start", gate)
	case n < 74:
		place := []string{"now", "before placing an edit", "after placing an edit", "before taking", "after taking", "placing fails"}[r.IntN(6)]
		return is(func(w *fleetWorld) { w.end(func() { w.gate(gate).crashLater(place) }) }, "g%d is to fail: %s", gate, place)
	case n < 92:
		f := drawFault(r)
		return is(func(w *fleetWorld) { w.b.plan(w.gate(gate).name, f) }, "g%d: the next %q %s", gate, f.kind, f.what)
	case n < 95:
		return is(func(w *fleetWorld) { w.b.save() }, "a backup of the broker")
	case n < 96:
		return is(func(w *fleetWorld) { w.b.restart(w.b.streams) }, "the broker restarts")
	case n < 98:
		return is(func(w *fleetWorld) { w.lose(map[string]*stream{}) }, "the broker loses all")
	}
	return is(func(w *fleetWorld) { w.lose(w.b.backup) }, "the broker gets its backup")
}

// drawFault draws what happens to a message.
func drawFault(r *rand.Rand) fault {
	f := fault{kind: []string{
		"write spamgate-lists list", "write spamgate-lists list", "write spamgate-lists list", "write spamgate-state", "write spamgate-content", "DIRECT GET KV_spamgate-lists",
		"DIRECT GET", "CONSUMER CREATE", "STREAM INFO", "STREAM MSG GET", "watch KV_spamgate-lists", "watch KV_spamgate-state", "say", "",
	}[r.IntN(14)]}
	late := drawTime(r, 100*time.Millisecond, 8*time.Second)
	switch n := r.IntN(10); {
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
	forgot  bool            // the broker has lost something that it had acknowledged
	quiet   time.Time       // gates are left alone until then: they put back what was lost
	added   map[string]bool // entries of edits that were acknowledged
	removed map[string]bool
	tokens  []string // that were added to the state

	looking   sync.Mutex        // guards what follows, and what was served
	sequences map[string]uint64 // of versions, by their SHA-256
	versions  map[uint64]string // the reverse
}

func (w *fleetWorld) must(err error) {
	if err != nil {
		panic(err)
	}
}

// playFleet plays moves.
func playFleet(w *world, moves []move) (err error) {
	setup := fleetSetup{1, []time.Duration{0, 0}, 0}
	if len(moves) > 0 {
		if s, ok := moves[0].(fleetSetup); ok {
			setup, moves = s, moves[1:]
		}
	}
	for range 2 { // the library keeps timers of the world before: a sync.Pool forgets at the second collection
		runtime.GC()
	}
	f := &fleetWorld{timedStory: timedStory{world: w}, b: newBroker(setup.seed), sequences: map[string]uint64{}, versions: map[uint64]string{}, added: map[string]bool{}, removed: map[string]bool{}}
	defer func() { err = f.conclude(recover()) }()
	synctest.Test(w.T, func(*testing.T) {
		f.begun = time.Now()
		f.play(setup, moves)
	})
	return nil
}

func (w *fleetWorld) play(setup fleetSetup, moves []move) {
	w.b.tell, w.b.watch, w.b.wrote = w.tell, w.look, w.wrote
	w.tell("%v", setup)
	for i, ahead := range setup.ahead {
		g := &fleetGate{w: w, name: fmt.Sprintf("g%d", i), ahead: ahead}
		w.gates = append(w.gates, g)
		content := "# kept by spamgate\n"
		if i == 0 {
			content = "first@example.net\n" + manyEntries(setup.size)
		}
		g.prepare(content)
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

func (w *fleetWorld) add(g *fleetGate, number int) {
	w.edit(g, fmt.Sprintf("adding e%d", number), with(entryOf(number)), func() { w.added[entryOf(number)] = true })
}

func (w *fleetWorld) remove(g *fleetGate, number int) {
	w.mu.Lock()
	counts := w.added[entryOf(number)] // else it may be added after it was removed
	w.mu.Unlock()
	if counts {
		w.edit(g, fmt.Sprintf("removing e%d", number), without(entryOf(number)), func() { w.removed[entryOf(number)] = true })
	}
}

// edit edits in the background.
func (w *fleetWorld) edit(g *fleetGate, what string, change func(string) (string, error), made func()) {
	w.background(g, what, func() error { return g.edit(change) }, made)
}

// background does something that is acknowledged or not. Made is called with the lock.
func (w *fleetWorld) background(g *fleetGate, what string, do func() error, made func()) {
	p := g.pointer.Load()
	w.edits.Go(func() {
		err := errKilled
		if p.m != nil {
			err = do()
		}
		if g.pointer.Load() != p {
			err = errKilled // whatever it says, to nobody
		}
		if err != nil {
			w.tell("%s: %s: %v", g.name, what, err)
			return
		}
		w.tell("%s: %s is acknowledged", g.name, what)
		w.mu.Lock()
		defer w.mu.Unlock()
		made()
	})
}

// stateKey is that of the value that the gates share.
var stateKey = fleet.StateKey("pin", blocked)

// set adds a token to the shared value.
func (w *fleetWorld) set(g *fleetGate, number int) {
	token, m := fmt.Sprintf("t%d", number), g.pointer.Load().m
	w.background(g, "setting "+token, func() error {
		return m.SetState(context.Background(), stateKey, func(old json.RawMessage) (json.RawMessage, error) {
			var tokens []string
			_ = json.Unmarshal(old, &tokens)
			if !slices.Contains(tokens, token) {
				tokens = append(tokens, token)
			}
			return json.Marshal(tokens)
		})
	}, func() { w.tokens = append(w.tokens, token) })
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

// lose puts something else in the place of what the broker has. What only a gate has that cannot reach
// the others soon would be lost: all gates run and are not cut off, and they stay so for a while.
func (w *fleetWorld) lose(streams map[string]*stream) {
	if streams == nil { // there is no backup
		return
	}
	w.edits.Wait()
	w.agree()
	w.mu.Lock()
	w.forgot = true
	w.quiet = time.Now().Add(time.Minute)
	w.mu.Unlock()
	w.spare()
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
	w.b.mu.Lock()
	w.b.faults = nil
	w.b.mu.Unlock()
	w.spare()
	w.agree()
	time.Sleep(10 * time.Second) // they stay so
	if !w.agreed() {
		w.fail("the gates agree no more")
	}
	w.tell("all have sequence %d", w.gates[0].served.sequence)
	w.checkEdits()
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
