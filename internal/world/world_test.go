package world

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	oneSeed   = flag.Uint64("world.seed", 0, "play the world of this `seed` alone, and tell its story")
	firstSeed = flag.Uint64("world.first", 1, "the first `seed`")
	shrinking = flag.Duration("world.shrink", 20*time.Second, "how `long` a world that fails is shrunk")
	count     = flag.Int("world.n", 0, "how `many` worlds each part plays; 0: a few")
	limit     = flag.Duration("world.time", 0, "how `long` each part plays, instead of a number of worlds")
)

// played counts worlds, also those that are played to shrink one that has failed.
var played atomic.Int64

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	fmt.Printf("%d worlds\n", played.Load())
	os.Exit(code)
}

// A part is a kind of world.
type part struct {
	few int // how many worlds a plain go test plays

	// draw draws the moves of a world. A move has all that it needs, seeds included, so that the
	// world can be played without some of the others.
	draw func(r *rand.Rand) []move

	// play plays moves in a world that is new. The error is what was seen that must not be.
	play func(w *world, moves []move) error
}

// A move is what one actor does.
type move interface{ String() string }

// A world is one run of a part.
type world struct {
	*testing.T
	dir   string // empty at first, and removed afterwards
	story []string
}

// tell adds a line to the story. It must not depend on anything but the seed: no time of day, no
// temporary name, no order of goroutines.
func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// trace is a digest of the story.
func (w *world) trace() string {
	sum := sha256.Sum256([]byte(strings.Join(w.story, "\n")))
	return fmt.Sprintf("%x", sum[:8])
}

// run plays worlds of a part. One that fails is shrunk, and told.
func run(t *testing.T, p *part) {
	t.Helper()
	if *oneSeed != 0 {
		w, err := p.world(t, p.moves(*oneSeed))
		t.Log("\n" + strings.Join(w.story, "\n"))
		fmt.Printf("%s trace=%s\n", t.Name(), w.trace())
		if err != nil {
			p.tellFailure(t, *oneSeed, err)
		}
		return
	}
	n := p.few
	if testing.Short() {
		n /= 4
	}
	if *count > 0 {
		n = *count
	}
	if *limit > 0 {
		n = math.MaxInt
	}
	end := time.Now().Add(*limit)
	for seed := *firstSeed; seed < *firstSeed+uint64(n) && (*limit == 0 || time.Now().Before(end)); seed++ {
		if _, err := p.world(t, p.moves(seed)); err != nil {
			p.tellFailure(t, seed, err)
		}
	}
}

func (p *part) moves(seed uint64) []move { return p.draw(rand.New(rand.NewPCG(seed, 0))) }

// world plays moves once.
func (p *part) world(t *testing.T, moves []move) (*world, error) {
	t.Helper()
	played.Add(1)
	dir, err := os.MkdirTemp(memory(), "world-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w := &world{T: t, dir: dir}
	return w, p.play(w, moves)
}

// memory returns a directory in memory, if there is one: no world asks what a real disk does.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir
	}
	return ""
}

// tellFailure ends the test with the shortest world that fails as well.
func (p *part) tellFailure(t *testing.T, seed uint64, failure error) {
	t.Helper()
	moves := p.moves(seed)
	all := len(moves)
	end := time.Now().Add(*shrinking)
	for n := len(moves) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(moves) && time.Now().Before(end); {
			fewer := slices.Delete(slices.Clone(moves), i, i+n)
			if _, err := p.world(t, fewer); err != nil {
				moves, failure = fewer, err
			} else {
				i += n
			}
		}
	}
	w, err := p.world(t, moves)
	if err == nil {
		err = fmt.Errorf("%w (not always: the world is not played alike each time)", failure)
	}
	t.Fatalf("%d of %d moves:\n%s\n-run '^%s$' -world.seed=%d: %v", len(moves), all, strings.Join(w.story, "\n"), t.Name(), seed, err)
}
