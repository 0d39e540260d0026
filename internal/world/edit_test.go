package world

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/config"
)

// TestEdit plays two keepers of managed lists: the gate's editor, and that of commands beside it, on
// a disk that fails and forgets.
//
// What is watched: an edit that was acknowledged is there, with one record in the audit log, and
// after a crash; any other is there wholly or not at all, and not without a record; undo undoes what it names, and nothing
// else; the gate serves what its editor has made live; the lists' files are lists.
func TestEdit(t *testing.T) {
	run(t, &part{few: 80, draw: drawEdit, play: playEdit})
}

// An editMove is what a keeper does.
type editMove struct {
	what    string
	gate    bool // it is the gate's editor
	list    int
	entries []int
	arg     int

	// What happens at a call of the disk meanwhile, counted from 1; 0: nothing.
	call    int
	trouble string
	other   *editMove // what the other keeper does then
	read    bool      // it comes when a file is read
	seed    uint64    // of what a crash forgets
}

func (m *editMove) String() string { return fmt.Sprintf("%+v", *m) }

// editMoves are what may happen, as often as it is named.
var editMoves = []string{
	"add", "add", "add", "add", "add", "remove", "remove", "move", "import", "undo", "undo", "undo",
	"roll back", "work", "restart", "crash",
}

func drawEdit(r *rand.Rand) []move {
	moves := make([]move, 4+r.IntN(14))
	for i := range moves {
		m := drawOneEdit(r, len(editMoves))
		if r.IntN(2) == 0 {
			m.call, m.trouble = 1+r.IntN(24), []string{"crash", "crash", "error", "full", "other"}[r.IntN(5)]
			m.other = drawOneEdit(r, len(editMoves)-3) // no restart in a restart
			m.read = m.trouble == "other" && r.IntN(2) == 0
			m.other.gate = false // the gate may be in the middle of something
		}
		moves[i] = m
	}
	return moves
}

func drawOneEdit(r *rand.Rand, kinds int) *editMove {
	m := &editMove{what: editMoves[r.IntN(kinds)], gate: r.IntN(2) == 0, list: r.IntN(2), arg: r.IntN(1000), seed: r.Uint64()}
	for range 1 + r.IntN(3) {
		m.entries = append(m.entries, r.IntN(6))
	}
	return m
}

const editConfig = `
hostname = "gate.example"
[state]
dir = "state"
[filter]
kind = "fuse"
[[list]]
name = "a"
managed = true
default = true
[[list]]
name = "b"
managed = true
`

var warmEdit sync.Once

func playEdit(w *world, moves []move) (err error) {
	warmEdit.Do(func() { _ = playEdits(&world{T: w.T, dir: w.T.TempDir()}, nil) }) // some things are opened once
	before := descriptors()
	if err = playEdits(w, moves); err == nil {
		err = before.returned()
	}
	return err
}

func playEdits(w *world, moves []move) (err error) {
	path := filepath.Join(w.dir, "config.toml")
	check(os.WriteFile(path, []byte(editConfig), 0o600))
	check(os.Mkdir(filepath.Join(w.dir, "state"), 0o700))
	c := must(config.Load(path))
	now := time.Now()
	synctest.Test(w.T, func(*testing.T) { err = newEditWorld(w, c, now).play(moves) })
	return err
}
