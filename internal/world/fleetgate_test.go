package world

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"spamgate/internal/fleet"
	"spamgate/internal/listedit"
)

// blocked is the list that the gates share.
const blocked = "blocked"

// A fleetGate is a gate of a fleet: a state directory, which several processes use one after the
// other.
type fleetGate struct {
	w       *fleetWorld
	name    string
	ahead   time.Duration // its clock
	pointer atomic.Pointer[process]

	began   atomic.Int32 // processes
	crashAt string       // where the process is killed next
	served  served
}

// A process is a member that runs.
type process struct {
	m    *fleet.Member // nil: none does
	door *door
	dir  string
	busy chan struct{} // has an element while somebody edits
}

// served is what a gate has served last.
type served struct {
	info     fs.FileInfo
	sequence uint64
}

func (p *process) path() string { return filepath.Join(p.dir, "managed", blocked+".txt") }

// prepare makes the state directory.
func (g *fleetGate) prepare(content string) {
	p := &process{dir: filepath.Join(g.w.dir, g.name)}
	g.w.must(os.MkdirAll(filepath.Dir(p.path()), 0o700))
	g.w.must(os.WriteFile(p.path(), []byte(content), 0o600))
	g.pointer.Store(p)
}

// start starts a process, unless one runs.
func (g *fleetGate) start() {
	last := g.pointer.Load()
	if last.m != nil {
		return
	}
	g.began.Add(1)
	p := &process{dir: last.dir, door: &door{b: g.w.b, gate: g.name}, busy: make(chan struct{}, 1)}
	pause := func(d time.Duration) time.Duration {
		g.w.b.mu.Lock()
		defer g.w.b.mu.Unlock()
		return d*3/4 + time.Duration(g.w.b.draw(g.name, "pause", d.String())%uint64(d/2+1))
	}
	m, err := fleet.Open(fleet.Options{
		Name: g.name, Version: "world", Servers: []string{"nats://broker"}, StateDir: p.dir,
		Lists:        []fleet.List{{Name: blocked, Kind: fleet.Managed, Path: p.path(), MaxBytes: 1 << 20}},
		Accept:       func(string, [sha256.Size]byte) error { return g.mayCrash(p, "before taking") },
		Applied:      func(string, *fleet.Version) { _ = g.mayCrash(p, "after taking") },
		StateChanged: func(string, json.RawMessage) error { return nil },
		Edges: &fleet.Edges{Pause: pause, Ahead: g.ahead, NATS: []nats.Option{
			nats.InProcessServer(p.door), nats.CustomReconnectDelay(func(int) time.Duration { return pause(time.Second) }),
		}},
	})
	g.w.must(err)
	p.m = m
	g.pointer.Store(p)
	g.w.tell("%s starts", g.name)
}

// stop ends the process as a signal does.
func (g *fleetGate) stop() {
	if p := g.pointer.Load(); p.m != nil {
		g.pointer.Store(&process{dir: p.dir})
		p.busy <- struct{}{} // edits end first
		p.m.Close()
		g.w.tell("%s has stopped", g.name)
	}
}

// errKilled says that the process has ended meanwhile.
var errKilled = errors.New("the process is killed")

// crash kills the process: what it does from now on reaches neither the broker nor the directory that
// the next one finds.
func (g *fleetGate) crash() {
	p := g.pointer.Load()
	if p.m == nil {
		return
	}
	g.w.b.kill(p.door)
	next := &process{dir: filepath.Join(g.w.dir, fmt.Sprintf("%s-%d", g.name, g.began.Load()))}
	g.w.must(os.CopyFS(next.dir, os.DirFS(p.dir)))
	g.pointer.Store(next)
	g.w.tell("%s is killed", g.name)
	g.w.killed.Go(p.m.Close)
}

// crashLater kills the process now, or at a point that it comes to.
func (g *fleetGate) crashLater(place string) {
	if place == "now" {
		g.crash()
		return
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.crashAt = place
}

// mayCrash kills the process if that is planned for this point.
func (g *fleetGate) mayCrash(p *process, place string) error {
	g.w.mu.Lock()
	crashes := g.pointer.Load() == p && g.crashAt == place
	if crashes {
		g.crashAt = ""
	}
	g.w.mu.Unlock()
	if crashes && place == "placing fails" {
		return errors.New("no space left on device")
	}
	if crashes {
		g.w.tell("%s: %s", g.name, place)
		g.crash()
		return errKilled
	}
	return nil
}

// edit changes the list as package managed does it.
func (g *fleetGate) edit(change func(old string) (string, error)) error {
	p := g.pointer.Load()
	p.busy <- struct{}{} // as the file's lock; but that would stop the time
	defer func() { <-p.busy }()
	return p.m.Retry(context.Background(), blocked, func() error {
		if g.pointer.Load() != p {
			return errKilled // what it waited for took no time
		}
		if !p.linked() {
			return fleet.ErrOffline
		}
		return g.tryEdit(p, change)
	})
}

// linked waits for the broker, for as long as Publish does, which would hold the file's lock.
func (p *process) linked() bool {
	for range 10 {
		if p.m.Status().Connected {
			return true
		}
		time.Sleep(time.Second / 2)
	}
	return false
}

// tryEdit is edit once.
func (g *fleetGate) tryEdit(p *process, change func(old string) (string, error)) error {
	var done func(bool)
	_, err := listedit.Rewrite(context.Background(), p.path(), func(old io.ReadSeeker, w io.Writer) error {
		text, err := io.ReadAll(old)
		if err != nil {
			return err
		}
		current, err := change(string(text))
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, current)
		return err
	}, listedit.Options{StateDir: p.dir, Publish: func(ctx context.Context, c listedit.Change, old, content *os.File) (err error) {
		done, err = p.m.Publish(ctx, fleet.Edit{List: blocked, Author: "ann", What: "edited", Accepted: true, SHA256: c.SHA256, Size: c.Size, Old: old, New: content})
		if err == nil {
			err = cmp.Or(g.mayCrash(p, "before placing an edit"), g.mayCrash(p, "placing fails"))
		}
		return err
	}})
	if err == nil {
		err = g.mayCrash(p, "after placing an edit")
	}
	if done != nil {
		done(err == nil)
	}
	return err
}

// text returns what the gate serves.
func (g *fleetGate) text() string {
	text, err := os.ReadFile(g.pointer.Load().path())
	g.w.must(err)
	return string(text)
}

// with returns a list with another entry.
func with(entry string) func(string) (string, error) {
	return func(old string) (string, error) { return old + entry + "\n", nil }
}

// without returns a list without an entry. A comment makes each content one of its own.
func without(entry string) func(string) (string, error) {
	return func(old string) (string, error) {
		lines := strings.Split(old, "\n")
		i := slices.Index(lines, entry)
		if i < 0 {
			return "", errNotThere
		}
		lines[i] = "# " + entry + " removed"
		return strings.Join(lines, "\n"), nil
	}
}

var errNotThere = errors.New("the entry is not there")
