package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing/synctest"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// A storeWorld is a store of up to three lists with its keepers.
type storeWorld struct {
	world  *world
	ctx    context.Context
	disk   *disk
	config store.Config
	store  *store.Store // nil while none runs
	lists  []*listModel
	dirty  bool      // a process may not have been able to remove its directory
	old    time.Time // when the clock has it, files that are changed now count as old

	// loose are the lists of which it is not known whether the store looked before or after something
	// else happened, with the contents that their files had meanwhile.
	loose map[*listModel][]string
}

// newStoreWorld makes the files of the lists. The clock of the world begins in 2000, and that of
// the files is the machine's: a file has always just been changed, until the move "later".
func newStoreWorld(w *world, now time.Time, lists int) *storeWorld {
	s := &storeWorld{world: w, ctx: context.Background(), old: now.Add(2 * time.Hour), loose: map[*listModel][]string{}}
	state := filepath.Join(w.dir, "state")
	check(os.Mkdir(state, 0o700))
	s.config = store.Config{
		StateDir: state, History: 2, Protect: []string{protected}, PollInterval: 100 * 365 * 24 * time.Hour, MaxDebounce: store.DefaultDebounce, Probes: -1,
		Filter: blocklist.Filter{Kind: blocklist.KindFuse}, Follow: s.follow, Logger: slog.New(slog.DiscardHandler),
	}
	for i, name := range []string{"a", "b", "c"}[:lists] {
		l := &listModel{
			name: name, hold: i == 2, versions: map[string][]string{}, accepted: map[string]bool{},
			stored: map[string]bool{}, pins: map[string]bool{"": true},
		}
		dir := filepath.Join(w.dir, name)
		check(os.Mkdir(dir, 0o700))
		l.paths, l.current = []string{filepath.Join(dir, "1.txt")}, []string{missing}
		if i == 1 { // a list of two files
			l.paths, l.current = append(l.paths, filepath.Join(dir, "2.txt")), append(l.current, missing)
		}
		for j := range l.paths {
			l.put(j, l.text("e1."+name+".example", "e2."+name+".example"))
		}
		s.lists = append(s.lists, l)
		list := store.List{Name: name, Paths: l.paths, Action: verdict.Reject, Rules: store.Rules{MinEntries: minEntries}, Whole: i == 2}
		if l.hold {
			list.OnProtected = store.HoldProtected
		}
		s.config.Lists = append(s.config.Lists, list)
	}
	s.disk = newDisk(state)
	return s
}

// follow lets the keeper write the rest of a file once the store reads it.
func (s *storeWorld) follow(path string, from io.Reader) io.Reader {
	for _, l := range s.lists {
		l.reads(path)
	}
	return from
}

func (s *storeWorld) play(moves []move) (err error) {
	defer s.disk.close()
	if err = s.open(false); err == nil {
		err = s.background()
	}
	for i, m := range moves {
		if err == nil {
			err = s.move(i+1, m.(storeMove))
		}
	}
	if s.store == nil {
		return err
	}
	if err == nil {
		time.Sleep(max(time.Hour, time.Until(s.old))) // now what is left counts as old
		err = s.restart()
	}
	if err == nil {
		err = s.background()
	}
	closed := s.close()
	if err == nil {
		err = errors.Join(closed, s.leftovers(), s.disk.unseen())
	}
	return err
}

// move makes one move, with the trouble that comes meanwhile.
func (s *storeWorld) move(n int, m storeMove) error {
	l := s.lists[m.list]
	s.world.tell("%d. %s, list %s", n, m.what, l.name)
	if m.call > 0 {
		s.disk.arm(m.call, s.trouble(m))
	}
	err := s.act(l, m)
	synctest.Wait() // what it has begun in the background is in its queue
	s.dirty = s.disk.disarm() || s.dirty
	if s.disk.isCrashed() {
		return s.crash(m.seed)
	}
	return err
}

// trouble returns what happens at a call of the disk.
func (s *storeWorld) trouble(m storeMove) func(string) error {
	l := s.lists[m.list]
	return func(call string) error {
		s.world.tell("    %s at call %d: %s", m.trouble, s.disk.calls, call)
		switch m.trouble {
		case "crash":
			return s.disk.crash(call)
		case "error":
			return syscall.EIO
		case "full":
			return s.disk.fill(call)
		}
		if s.disk.runs != "" { // others wait for this one
			return nil
		}
		s.loose[l] = append(s.loose[l], l.sum())
		s.command(l, m.trouble, m.arg)
		return nil
	}
}

// act makes the move's own part.
func (s *storeWorld) act(l *listModel, m storeMove) error {
	file := m.arg % len(l.paths)
	switch m.what {
	case "write":
		l.put(file, l.text(fmt.Sprintf("e%d.%s.example", m.arg%7, l.name), "e8."+l.name+".example"))
	case "few":
		l.put(file, l.text())
	case "empty":
		l.put(file, "")
	case "covers":
		l.put(file, l.text("e1."+l.name+".example", protected, "e2."+l.name+".example"))
	case "remove":
		l.put(file, missing)
	case "late":
		l.putLate(l.text("e1."+l.name+".example", "e2."+l.name+".example", "e3."+l.name+".example"))
	case "later":
		time.Sleep(max(time.Hour, time.Until(s.old)))
	case "accept content", "pin version", "unpin version":
		s.command(l, m.what, m.arg)
	case "look":
		_ = s.store.Rescan(s.ctx)
		return s.seen()
	case "accept":
		return s.accept(l)
	case "pin":
		return s.pin(l)
	case "unpin":
		l.pins[""] = true
		err := s.store.Unpin(s.ctx, l.name)
		s.pinned(l, "", err)
		return s.perhapsSeen(err)
	case "roll back":
		return s.rollBack(l, m.arg)
	case "work":
		return s.background()
	case "restart":
		return s.restart()
	case "crash":
		_ = s.disk.crash("")
	case "hand over":
		return s.handOver()
	}
	return nil
}

// acknowledged reports whether a command has succeeded, and the machine did not crash meanwhile.
func (s *storeWorld) acknowledged(err error) bool {
	s.world.tell("    %s", map[bool]string{true: "done", false: "failed"}[err == nil])
	return err == nil && !s.disk.isCrashed()
}

// pinned notes that a list has no other pin if that is acknowledged, and nobody meddled.
func (s *storeWorld) pinned(l *listModel, pin string, err error) {
	if _, loose := s.loose[l]; s.acknowledged(err) && !loose {
		l.pins = map[string]bool{pin: true}
	}
}

// seen watches after a look at the files, unless the machine has crashed.
func (s *storeWorld) seen() error {
	if s.disk.isCrashed() {
		return nil
	}
	return s.watch(s.troubled())
}

// perhapsSeen is seen for a command that does not look at the files if it fails before that.
func (s *storeWorld) perhapsSeen(err error) error {
	for _, l := range s.lists {
		if err != nil {
			s.loose[l] = append(s.loose[l], l.sum())
		}
	}
	return s.seen()
}

// troubled reports whether something has happened to the disk since the move began.
func (s *storeWorld) troubled() bool { return s.disk.pos > 0 && s.disk.calls >= s.disk.pos }

// command does what another process may do at any time.
func (s *storeWorld) command(l *listModel, what string, arg int) {
	switch what {
	case "write":
		l.put(arg%len(l.paths), l.text("e1."+l.name+".example", "e2."+l.name+".example"))
	case "accept content":
		sum := l.sum()
		if sum == "" {
			return
		}
		l.accepted[sum] = l.accepted[sum] || s.acknowledged(store.AcceptContent(s.config, l.name, sum))
	case "pin version":
		versions, _ := store.Versions(s.config.StateDir, l.name)
		if len(versions) == 0 {
			return
		}
		v := versions[arg%len(versions)]
		s.world.tell("    a command pins it at %s", l.called(v.Sum))
		l.pins[v.Sum] = true
		s.pinned(l, v.Sum, store.PinList(s.ctx, s.config, l.name, blocklist.Pin{Sum: v.Sum, Entries: v.Entries, Since: time.Now()}))
	case "unpin":
		l.pins[""] = true
		s.pinned(l, "", store.UnpinList(s.config, l.name))
	}
}

// accept accepts what is held of a list.
func (s *storeWorld) accept(l *listModel) error {
	sum := l.sum()
	err := s.store.Accept(s.ctx, l.name)
	if s.acknowledged(err) {
		l.crashes = 0
	}
	if sum != "" && len(l.entries(l.current)) < minEntries {
		l.accepted[sum] = l.accepted[sum] || err == nil && !s.disk.isCrashed()
	}
	return s.perhapsSeen(err)
}

// pin pins a list at what it serves.
func (s *storeWorld) pin(l *listModel) error {
	pin := l.serves
	l.pins[pin] = true
	_, err := s.store.Pin(s.ctx, l.name, blocklist.Pin{Since: time.Now()})
	s.pinned(l, pin, err)
	return s.perhapsSeen(err)
}

// rollBack puts a version of the history back, as the command does.
func (s *storeWorld) rollBack(l *listModel, arg int) error {
	versions, err := store.Versions(s.config.StateDir, l.name)
	if err != nil || len(versions) == 0 {
		return err
	}
	v := versions[arg%len(versions)]
	s.world.tell("    to %s", l.called(v.Sum))
	l.accepted[v.Sum] = l.accepted[v.Sum] || s.acknowledged(store.AcceptContent(s.config, l.name, v.Sum))
	if s.disk.isCrashed() {
		return nil
	}
	for i, text := range l.versions[v.Sum] {
		l.put(i, text)
	}
	_ = s.store.Rescan(s.ctx)
	return s.seen()
}

// background lets the store do what can wait: keep filters and versions.
func (s *storeWorld) background() error {
	s.drain()
	if s.disk.isCrashed() {
		return nil
	}
	return s.lasting()
}

// drain lets the background work to its end. What it should keep is there then.
func (s *storeWorld) drain() {
	s.disk.drain()
	for _, l := range s.lists {
		if s.troubled() {
			l.kept = "" // others may have been kept unseen, and it is old
		} else if l.job != "" && l.job == l.sum() && !s.disk.isCrashed() {
			l.kept = l.job
		}
		l.job = ""
	}
}

// open starts a store on what there is.
func (s *storeWorld) open(again bool) (err error) {
	for _, l := range s.lists {
		l.serves = ""
	}
	s.store, err = store.Open(s.ctx, s.config)
	if s.disk.isCrashed() {
		return nil
	}
	if err != nil && s.troubled() && !again { // what it cannot make it has nowhere else
		s.world.tell("    does not start: the disk")
		s.disk.disarm()
		return s.open(true)
	}
	if err != nil {
		return fmt.Errorf("the store does not open: %w", err)
	}
	s.dirty = false // it has removed what others have left
	if err := s.seen(); err != nil {
		return err
	}
	time.Sleep(10 * time.Second) // the store looks again soon after its start
	s.drain()
	return s.seen()
}

// close ends the store.
func (s *storeWorld) close() error {
	if s.store == nil {
		return nil
	}
	s.drain()
	err := s.store.Close()
	s.store = nil
	return err
}

func (s *storeWorld) restart() error {
	if err := s.close(); err != nil || s.disk.isCrashed() {
		return err
	}
	if err := s.leftoversOfClose(); err != nil {
		return err
	}
	return s.open(false)
}

// handOver starts a second store beside the first, which then ends.
func (s *storeWorld) handOver() error {
	first := s.store
	s.drain()
	if s.disk.isCrashed() {
		return nil
	}
	err := s.open(false)
	s.drain()
	return errors.Join(err, first.Close())
}

// crash ends what ran, and starts again on what the disk has left.
func (s *storeWorld) crash(seed uint64) error {
	s.world.tell("    the machine crashes")
	if s.store != nil {
		_ = s.store.Close()
		s.store = nil
	}
	s.disk.restart(rand.New(rand.NewPCG(seed, 0)))
	clear(s.loose)
	for _, l := range s.lists {
		l.crashes++
		l.job = ""
	}
	if err := s.lasting(); err != nil {
		return err
	}
	for _, l := range s.lists { // what is there now is synced
		pin := must(store.ReadPin(s.config.StateDir, l.name))
		if l.pins = map[string]bool{"": true}; pin != nil {
			l.pins = map[string]bool{pin.Sum: true}
		}
	}
	return s.open(false)
}

// leftoversOfClose returns an error if the directory of a process that has ended is there.
func (s *storeWorld) leftoversOfClose() error {
	entries, err := os.ReadDir(filepath.Join(s.config.StateDir, "work"))
	if err == nil && len(entries) > 0 && !s.dirty && !s.troubled() {
		return fmt.Errorf("work/ has %d directories of processes that have ended", len(entries))
	}
	return nil
}
