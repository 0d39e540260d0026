package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/gate"
	"spamgate/internal/logging"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
)

// A gateProcess is a process of spamgate.
type gateProcess struct {
	w       *gateWorld
	number  int
	dir     string // its state directory
	file    string // its configuration
	signals chan os.Signal
	admin   atomic.Pointer[admin.Options] // what the admin socket serves
	done    chan struct{}

	// Guarded by net.mu.
	dead bool
	ends []*end
}

// gateConfig is a configuration, with the state directory, where mail goes, and what variants change.
const gateConfig = `
hostname = "gate.example"
[state]
dir = %q
[listen]
addr = "192.0.2.1:25"
client_connections = 3
name_lookup = false
shutdown_timeout = "20s"
[next_hop]
addr = [%s]
balance = %q
identity = "none"
probe_interval = "1h"
reply_timeout = "1m"
%s
[policy]
recipient_domains = ["rcpt.example"]
reject_text = "refused: list {list}"
[watch]
poll_interval = "10s"
[decisions]
record = "all"
[filter]
kind = "fuse"
[[list]]
name = "blocked"
path = %q
action = %q
[[list]]
name = "managed"
managed = true
default = true
`

// poll is by when a change of a file has been seen, with some seconds more.
const poll = 12 * time.Second

// configure writes the configuration of a process.
func (p *gateProcess) configure(variant int) {
	w := p.w
	var addrs []string
	for _, h := range w.hops {
		addrs = append(addrs, fmt.Sprintf("%q", "smtp://"+h.addr))
	}
	action, more := "reject", ""
	switch variant {
	case 1:
		action, more = "defer", "reuse = false"
	case 2:
		slices.Reverse(addrs)
		more = "messages_per_connection = 2"
	}
	text := fmt.Sprintf(gateConfig, p.dir, strings.Join(addrs, ", "), w.setup.balance, more, filepath.Join(w.dir, "lists", "blocked.txt"), action)
	check(os.WriteFile(p.file, []byte(text), 0o600))
}

// present returns the gate that is in charge.
func (w *gateWorld) present() *gateProcess {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gates[len(w.gates)-1]
}

// launch makes a process, which tells ready whether it serves.
func (w *gateWorld) launch(dir string, succeeds bool) (p *gateProcess, ready chan error) {
	w.mu.Lock()
	p = &gateProcess{w: w, number: len(w.gates), dir: dir, signals: make(chan os.Signal, 8), done: make(chan struct{})}
	w.gates = append(w.gates, p)
	w.mu.Unlock()
	p.file = filepath.Join(w.dir, fmt.Sprintf("config-%d.toml", p.number))
	p.configure(int(w.variant.Load()))
	ready = make(chan error, 2)
	edges := gate.Edges{
		Edges:    setup.Edges{Dial: p.dial, Random: w.net.chance},
		Signals:  p.signals,
		Succeeds: succeeds,
		Listen: func(addr *net.TCPAddr) net.Listener {
			return &gateListener{gate: p, addr: addr, changed: make(signal), serves: func() { ready <- nil }}
		},
		Admin: func(o admin.Options) { p.admin.Store(&o) },
		Successor: func() (chan error, chan struct{}) {
			n, ready := w.launch(p.dir, true)
			return ready, n.done
		},
	}
	go func() {
		defer close(p.done)
		stderr := logging.NewWriter(gateLog{p})
		defer stderr.Close()
		err := gate.Simulate(context.Background(), p.file, stderr, edges)
		if !p.isDead() { // else nobody sees it
			w.tell("gate %d has ended: %v", p.number, err)
			if err != nil {
				w.fail("gate %d ended: %v", p.number, err)
			}
		}
		ready <- cmp.Or(err, errors.New("it has ended"))
	}()
	return p, ready
}

func (p *gateProcess) isDead() bool {
	p.w.net.mu.Lock()
	defer p.w.net.mu.Unlock()
	return p.dead
}

// gateLog takes the log of a process.
type gateLog struct{ *gateProcess }

func (l gateLog) Write(line []byte) (int, error) {
	l.w.mu.Lock()
	fmt.Fprintf(&l.w.log, "%10.4f gate %d: %s", time.Since(l.w.begun).Seconds(), l.number, line)
	l.w.mu.Unlock()
	if text := string(line); strings.Contains(text, "panic") || strings.Contains(text, "fault\"") {
		l.w.fail("gate %d logs %s", l.number, text)
	}
	return len(line), nil
}

// start starts a gate in a state directory, and waits until it serves.
func (w *gateWorld) start(dir string) {
	p, ready := w.launch(dir, false)
	if err := <-ready; err != nil {
		w.fail("gate %d does not start: %v", p.number, err)
	}
	w.managed.settle(time.Now(), p.number)
}

// keep lets the keeper do something, after what is to be done before. It gets the gate in charge.
func (w *gateWorld) keep(do func(p *gateProcess, a *admin.Options)) {
	w.busy.Add(1)
	w.work <- func() {
		p := w.present()
		if a := p.admin.Load(); a != nil && !p.isDead() {
			do(p, a)
		}
	}
}

// reload loads a configuration.
func (w *gateWorld) reload(variant int) {
	w.keep(func(p *gateProcess, _ *admin.Options) {
		w.variant.Store(int32(variant))
		p.configure(variant)
		p.signals <- syscall.SIGHUP
	})
}

// handOver hands over to a new process.
func (w *gateWorld) handOver() {
	w.keep(func(p *gateProcess, a *admin.Options) {
		_, err := a.Gate.Handover(context.Background(), 0)
		w.tell("gate %d hands over: %v", p.number, err)
		if err != nil && !p.isDead() {
			w.fail("gate %d cannot hand over: %v", p.number, err)
		}
	})
}

// crash kills all processes, and starts one with what they have written. (A disk that forgets is in
// other worlds.)
func (w *gateWorld) crash() {
	w.crashed.Store(true)
	dir := filepath.Join(w.dir, fmt.Sprintf("state-%d", len(w.gates)))
	check(os.CopyFS(dir, os.DirFS(w.present().dir)))
	check(os.Chmod(dir, 0o700))
	for _, p := range w.gates {
		w.net.cutOff(p)
		select {
		case <-p.done:
		default:
			for range 2 { // what they still do nobody sees
				p.signals <- syscall.SIGTERM
			}
		}
	}
	w.start(dir)
}

var gateKeeper = managed.By{Name: "ann", Role: "editor", Through: managed.ThroughConsole, User: "gate"}

// drawKeeper draws what a keeper does.
func drawKeeper(r *rand.Rand, i int) gateMove {
	is := func(do func(w *gateWorld, p *gateProcess, a *admin.Options), format string, args ...any) gateMove {
		return gateMove{0, fmt.Sprintf(format, args...), func(w *gateWorld) {
			w.keep(func(p *gateProcess, a *admin.Options) { do(w, p, a) })
		}}
	}
	d := r.IntN(6)
	switch n := r.IntN(10); {
	case n < 3:
		var domains []int
		for d := range 6 {
			if r.IntN(3) == 0 {
				domains = append(domains, d)
			}
		}
		return is(func(w *gateWorld, p *gateProcess, a *admin.Options) { w.editFile(domains, i) }, "the file of blocked gets %v", domains)
	case n < 4:
		return is((*gateWorld).emptyFile, "the file of blocked is emptied")
	case n < 7:
		return is(func(w *gateWorld, p *gateProcess, a *admin.Options) { w.changeEntry(p, a, d, true) }, "d%d is added to managed", d)
	case n < 8:
		return is(func(w *gateWorld, p *gateProcess, a *admin.Options) { w.changeEntry(p, a, d, false) }, "d%d is removed from managed", d)
	case n < 9:
		return is((*gateWorld).undo, "the last change of managed is undone")
	}
	if r.IntN(2) == 0 {
		return is((*gateWorld).pin, "blocked is pinned")
	}
	return is((*gateWorld).unpin, "blocked is unpinned")
}

// writeFile writes the file of the blocked list.
func (w *gateWorld) writeFile(text string) {
	path := filepath.Join(w.dir, "lists", "blocked.txt")
	check(os.WriteFile(path+".new", []byte(text), 0o600))
	check(os.Rename(path+".new", path))
}

// listText returns a list of domains.
func listText(domains []int, comment any) string {
	text := fmt.Sprintf("# %v\n", comment)
	for _, d := range domains {
		text += fmt.Sprintf("d%d.example\n", d)
	}
	return text
}

func (w *gateWorld) editFile(domains []int, i int) {
	w.writeFile(listText(domains, i))
	w.blocked.onDisk = domains
	if w.blocked.held = false; !w.blocked.pinned {
		w.blocked.change(domains)
		w.blocked.settle(time.Now().Add(poll), 0)
	}
}

// emptyFile empties the file of the list, which is held then.
func (w *gateWorld) emptyFile(*gateProcess, *admin.Options) {
	w.writeFile("")
	w.blocked.held = true
	w.blocked.doubt()
}

func (w *gateWorld) pin(_ *gateProcess, a *admin.Options) {
	_, err := a.Gate.Rescan(context.Background())
	if err == nil {
		_, err = a.Gate.Pin(context.Background(), managed.Self(), "blocked", admin.PinRequest{})
	}
	if err != nil {
		w.fail("the list is not pinned: %v", err)
	}
	w.blocked.pinned = true
}

func (w *gateWorld) unpin(p *gateProcess, a *admin.Options) {
	if !w.blocked.pinned {
		return
	}
	if !w.blocked.held {
		w.blocked.change(w.blocked.onDisk)
	}
	if _, err := a.Gate.Unpin(context.Background(), managed.Self(), "blocked", admin.UnpinRequest{}); err != nil {
		w.fail("the list is not unpinned: %v", err)
	}
	if w.blocked.pinned = false; !w.blocked.held {
		w.blocked.settle(time.Now(), p.number)
	}
}

// A gateChange is an edit that was acknowledged.
type gateChange struct {
	id     string
	before []int // what the list had
}

// edit makes an edit of the managed list, which makes it after. It takes no time, so that nothing
// comes between.
func (w *gateWorld) edit(p *gateProcess, after []int, edit func() (managed.Result, error)) {
	before := w.managed.last().domains
	w.managed.change(after)
	r, err := edit()
	w.tell("managed is to have %v: %v", after, err)
	switch has := w.managedFile(p.dir); {
	case err != nil && slices.Equal(has, before):
		w.managed.change(before)
	case !slices.Equal(has, after):
		w.fail("the managed list has %v after an edit (%v) that makes it %v", has, err, after)
	case err == nil && r.NotLive != "":
		w.fail("an edit is not live: %s", r.NotLive)
	}
	w.managed.settle(time.Now(), p.number)
	if err == nil && r.Changed {
		w.changes = append(w.changes, gateChange{r.Change, before})
	}
}

// managedFile returns what the managed list has in a state directory.
func (w *gateWorld) managedFile(dir string) (domains []int) {
	text := string(must(os.ReadFile(filepath.Join(dir, managed.Dir, "managed.txt"))))
	for d := range 6 {
		if strings.Contains(text, fmt.Sprintf("\nd%d.example", d)) {
			domains = append(domains, d)
		}
	}
	return domains
}

// changeEntry adds a domain to the managed list, or removes it.
func (w *gateWorld) changeEntry(p *gateProcess, a *admin.Options, d int, adds bool) {
	name := managed.Name{Entry: fmt.Sprintf("d%d.example", d)}
	after := slices.DeleteFunc(slices.Clone(w.managed.last().domains), func(other int) bool { return other == d })
	if adds {
		after = slices.Sorted(slices.Values(append(after, d)))
	}
	w.edit(p, after, func() (managed.Result, error) {
		if adds {
			return a.Editor.Add(context.Background(), gateKeeper, "managed", []managed.NewEntry{{Name: name}}, managed.Options{})
		}
		return a.Editor.Remove(context.Background(), gateKeeper, "managed", []managed.Name{name}, managed.Options{})
	})
}

// undo undoes the last change that was not undone.
func (w *gateWorld) undo(p *gateProcess, a *admin.Options) {
	n := len(w.changes) - 1
	if n < 0 {
		return
	}
	w.edit(p, w.changes[n].before, func() (managed.Result, error) {
		r, err := a.Editor.Undo(context.Background(), gateKeeper, w.changes[n].id, managed.Options{})
		if err != nil {
			w.fail("the change of %v is not undone: %v", w.changes[n].before, err)
		}
		return r, err
	})
	w.changes = w.changes[:n]
}
