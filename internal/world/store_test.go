package world

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestStore plays the lists' store on a disk that fails and forgets: keepers who write list files,
// commands that accept, pin and roll back, restarts, handovers and crashes.
//
// What is watched: a start succeeds after each crash; a list serves one whole version that a keeper
// wrote, and the one that it has to; what is held does not serve; a version, an acceptance and a pin
// that were acknowledged are there after a crash; what the history has is what was kept; no
// temporary file, goroutine or descriptor stays.
func TestStore(t *testing.T) {
	run(t, &part{few: 80, draw: drawStore, play: playStore})
}

// A storeMove is what somebody does with a list.
type storeMove struct {
	what string
	list int
	arg  int

	// What happens at a call of the disk meanwhile, counted from 1; 0: nothing.
	call    int
	trouble string
	seed    uint64 // of what a crash forgets
}

func (m storeMove) String() string { return fmt.Sprintf("%+v", struct{ storeMove }{m}) }

// storeMoves are what may happen, with how often.
var storeMoves = []struct {
	what  string
	often int
}{
	{"write", 30}, {"few", 8}, {"empty", 3}, {"covers", 4}, {"remove", 3}, {"late", 6},
	{"look", 30}, {"work", 14}, {"accept", 8}, {"accept content", 6}, {"pin", 6}, {"pin version", 6}, {"unpin", 8},
	{"roll back", 6}, {"restart", 8}, {"crash", 6}, {"hand over", 4}, {"later", 3},
}

// troubles are what may happen at a call of the disk. The commands are those of another process.
var troubles = []string{"crash", "crash", "crash", "error", "error", "full", "accept content", "pin version", "unpin", "write"}

func drawStore(r *rand.Rand) []move {
	sum := 0
	for _, m := range storeMoves {
		sum += m.often
	}
	lists := 1 + r.IntN(3)
	moves := make([]move, 4+r.IntN(16))
	for i := range moves {
		m := storeMove{list: r.IntN(lists), arg: r.IntN(1000), seed: r.Uint64()}
		for n, j := r.IntN(sum), 0; n >= 0; n, j = n-storeMoves[j].often, j+1 {
			m.what = storeMoves[j].what
		}
		if r.IntN(3) == 0 {
			m.call, m.trouble = 1+r.IntN(40)*r.IntN(3)/2, troubles[r.IntN(len(troubles))]
		}
		moves[i] = m
	}
	return moves
}

var warm sync.Once

func playStore(w *world, moves []move) (err error) {
	warm.Do(func() {
		synctest.Test(w.T, func(*testing.T) { _ = newStoreWorld(&world{T: w.T, dir: w.T.TempDir()}, time.Now(), 1).play(nil) })
	}) // some things are opened once
	before := descriptors()
	now, lists := time.Now(), 1
	for _, m := range moves {
		lists = max(lists, m.(storeMove).list+1)
	}
	synctest.Test(w.T, func(*testing.T) { err = newStoreWorld(w, now, lists).play(moves) })
	if err == nil {
		err = before.returned()
	}
	return err
}
