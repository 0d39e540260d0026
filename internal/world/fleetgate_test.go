package world

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"spamgate/internal/accounts"
	"spamgate/internal/fleet"
	"spamgate/internal/listedit"
)

// The lists that the gates share, beside the accounts. Feed comes from a URL.
const (
	blocked = "blocked"
	allowed = "allowed"
	feed    = "feed"
)

// A fleetGate is a gate of a fleet: a state directory, which several processes use one after the
// other.
type fleetGate struct {
	w       *fleetWorld
	name    string
	ahead   time.Duration // its clock
	reads   bool          // its credentials only permit reading
	pointer atomic.Pointer[process]

	began      atomic.Int32 // processes
	fetchFails atomic.Bool
	crashAt    string // where the process is killed next
	own        string // the digest of what it has fetched, which the fleet may not have yet
	served     map[string]served
}

// A process is a member that runs.
type process struct {
	g        *fleetGate
	m        *fleet.Member // nil: none does
	accounts *accounts.Store
	door     *door
	dir      string
	busy     map[string]chan struct{} // has an element while somebody edits a list
	tried    map[string]string        // the digest that the last edit of a list made; used by who edits
}

// served is what a gate has served last of a list.
type served struct {
	info     fs.FileInfo
	digest   string
	sequence uint64
}

func (p *process) list(name string) fleet.List {
	l := fleet.List{Name: name, Kind: fleet.Managed, Path: filepath.Join(p.dir, "managed", name+".txt"), MaxBytes: 1 << 20}
	switch name {
	case feed:
		l.Kind, l.Path = fleet.Fetched, filepath.Join(p.dir, "copies", name)
	case fleet.AccountsList:
		l.Kind, l.Path = fleet.Accounts, accounts.Path(filepath.Join(p.dir, "console"))
	}
	return l
}

// text returns what a gate serves.
func (p *process) text(list string) string {
	text, err := os.ReadFile(p.list(list).Path)
	if !errors.Is(err, fs.ErrNotExist) {
		p.g.w.must(err)
	}
	return string(text)
}

// prepare makes the state directory. First is what the first list has, if it is not empty.
func (g *fleetGate) prepare(first string) {
	p := &process{g: g, dir: filepath.Join(g.w.dir, g.name)}
	for _, dir := range []string{"managed", "copies"} {
		g.w.must(os.MkdirAll(filepath.Join(p.dir, dir), 0o700))
	}
	for _, list := range g.w.lists {
		if p.list(list).Kind == fleet.Managed {
			g.w.must(os.WriteFile(p.list(list).Path, []byte(cmp.Or(first, "# "+list+", kept by spamgate\n")), 0o600))
			first = ""
		}
	}
	g.pointer.Store(p)
}

// start starts a process, unless one runs.
func (g *fleetGate) start() {
	last := g.pointer.Load()
	if last.m != nil {
		return
	}
	g.began.Add(1)
	p := &process{g: g, dir: last.dir, door: &door{b: g.w.b, gate: g.name, reads: g.reads}, busy: map[string]chan struct{}{}, tried: map[string]string{}}
	pause := func(d time.Duration) time.Duration {
		g.w.b.mu.Lock()
		defer g.w.b.mu.Unlock()
		return d*3/4 + time.Duration(g.w.b.draw(g.name, "pause", d.String())%uint64(d/2+1))
	}
	o := fleet.Options{
		Name: g.name, Version: "world", Servers: []string{"nats://broker"}, StateDir: p.dir,
		Accept: func(string, [sha256.Size]byte) error { return g.mayCrash(p, "before taking") },
		Applied: func(list string, _ *fleet.Version) {
			p.lookNow(list)
			_ = g.mayCrash(p, "after taking")
		},
		StateChanged: func(string, json.RawMessage) error { return nil },
		FetchFails:   func(string) bool { return g.fetchFails.Load() },
		Edges: &fleet.Edges{Pause: pause, Ahead: g.ahead, NATS: []nats.Option{
			nats.InProcessServer(p.door), nats.CustomReconnectDelay(func(int) time.Duration { return pause(time.Second) + p.door.stalled() }),
		}},
	}
	for _, list := range g.w.lists {
		o.Lists = append(o.Lists, p.list(list))
		p.busy[list] = make(chan struct{}, 1)
		if list == fleet.AccountsList {
			p.accounts = accounts.Open(filepath.Dir(p.list(list).Path))
			p.accounts.Join(p)
			g.w.must(p.accounts.Prepare())
			o.Accounts = p.accounts
		}
	}
	m, err := fleet.Open(o)
	g.w.must(err)
	p.m = m
	g.pointer.Store(p)
	g.w.tell("%s starts", g.name)
}

// stop ends the process as a signal does.
func (g *fleetGate) stop() {
	if p := g.pointer.Load(); p.m != nil {
		g.pointer.Store(&process{g: g, dir: p.dir})
		for _, list := range g.w.lists {
			p.busy[list] <- struct{}{} // edits end first
		}
		p.close()
		g.w.tell("%s has stopped", g.name)
	}
}

func (p *process) close() {
	p.m.Close()
	if p.accounts != nil {
		p.accounts.Close()
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
	next := &process{g: g, dir: filepath.Join(g.w.dir, fmt.Sprintf("%s-%d", g.name, g.began.Load()))}
	g.w.must(os.CopyFS(next.dir, os.DirFS(p.dir)))
	g.pointer.Store(next)
	g.w.tell("%s is killed", g.name)
	g.w.killed.Go(func() {
		p.m.Close() // who edits may still use the accounts
	})
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

// edit changes a list as package managed does it.
func (g *fleetGate) edit(p *process, list string, change func(old string) (string, error)) error {
	return p.retry(list, func() error { return g.tryEdit(p, list, change) })
}

func (p *process) retry(list string, edit func() error) error {
	p.busy[list] <- struct{}{} // as the file's lock; but that would stop the time
	defer func() { <-p.busy[list] }()
	return p.m.Retry(context.Background(), list, func() error {
		if p.g.pointer.Load() != p {
			return errKilled // what it waited for took no time
		}
		if !p.linked() {
			return fleet.ErrOffline
		}
		return edit()
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
func (g *fleetGate) tryEdit(p *process, list string, change func(old string) (string, error)) error {
	var done func(bool)
	_, err := listedit.Rewrite(context.Background(), p.list(list).Path, func(old io.ReadSeeker, w io.Writer) error {
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
		done, err = p.publish(ctx, fleet.Edit{List: list, Author: "ann", What: "edited", Accepted: true, SHA256: c.SHA256, Size: c.Size, Old: old, New: content})
		return err
	}})
	if done != nil {
		done(err == nil)
	}
	return err
}

// publish publishes an edit, and is where the process may be killed.
func (p *process) publish(ctx context.Context, e fleet.Edit) (done func(placed bool), err error) {
	p.g.w.tries(p, e)
	published, err := p.m.Publish(ctx, e)
	if err == nil {
		err = cmp.Or(p.g.mayCrash(p, "before placing an edit"), p.g.mayCrash(p, "placing fails"))
	}
	if published == nil {
		return nil, err
	}
	return func(placed bool) {
		p.lookNow(e.List)
		published(placed && p.g.mayCrash(p, "after placing an edit") == nil)
	}, err
}

// earlier returns an earlier content that the fleet has, by its digest.
func (p *process) earlier(want string) (string, error) {
	content, err := p.m.Earlier(context.Background(), blocked, func(sum [sha256.Size]byte) bool { return hex.EncodeToString(sum[:]) == want })
	if err != nil {
		return "", err
	}
	if content == nil {
		return "", errNotThere
	}
	defer content.Discard()
	text, err := io.ReadAll(content)
	if got := digestOf(string(text)); err == nil && got != want {
		p.g.w.fail("%s: the fleet has %.8s as the version %.8s", p.g.name, got, want)
	}
	return string(text), err
}

// fetch gets another content of the list from a URL, if that is for this gate to do.
func (g *fleetGate) fetch(number int) {
	p := g.pointer.Load()
	if p.m == nil || !p.m.Fetches(feed) {
		return
	}
	g.w.tell("%s fetches content %d", g.name, number)
	path := p.list(feed).Path
	g.w.must(os.WriteFile(path+".new", fmt.Appendf(nil, "%s\n", entryOf(number)), 0o600))
	g.w.must(os.Rename(path+".new", path))
	g.own = digestOf(p.text(feed))
}

// Shared, Retry, Publish and EndSessions implement accounts.Fleet.
func (p *process) Shared() bool { return true }

func (p *process) Retry(_ context.Context, edit func() error) error {
	return p.retry(fleet.AccountsList, edit)
}

func (p *process) Publish(ctx context.Context, what string, old *os.File, text []byte) (done func(placed bool), err error) {
	done, err = p.publish(ctx, fleet.AccountsEdit(what, old, text))
	if err != nil && done != nil {
		done(false)
	}
	return done, err
}

func (p *process) EndSessions(context.Context, string) error { return nil }

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// with returns a list with another entry.
func with(entry string) func(string) (string, error) {
	return func(old string) (string, error) {
		if strings.Contains("\n"+old, "\n"+entry+"\n") { // by an attempt whose acknowledgement was lost
			return "", listedit.ErrUnchanged
		}
		return old + entry + "\n", nil
	}
}

// undone returns a list without an entry, or with it again.
func undone(entry string) func(string) (string, error) {
	return func(old string) (string, error) {
		lines := strings.Split(old, "\n")
		removed := "# removed " + entry
		for i, line := range lines {
			switch line {
			case entry:
				lines[i] = removed
				return strings.Join(lines, "\n"), nil
			case removed:
				lines[i] = entry
				return strings.Join(lines, "\n") + "# again\n", nil // no content comes twice
			}
		}
		return "", errNotThere
	}
}

var errNotThere = errors.New("the entry is not there")
