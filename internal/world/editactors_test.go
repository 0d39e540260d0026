package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
)

// An editWorld is a gate with two managed lists, and commands beside it.
type editWorld struct {
	world   *world
	ctx     context.Context
	disk    *disk
	config  *config.Config
	stores  store.Config
	store   *store.Store
	gate    *managed.Editor
	command *managed.Editor
	lists   []*managedModel
	changes []*changeModel
	reasons int
	doing   *doing
	meddled bool // the other keeper was let in during the move
}

func newEditWorld(w *world, c *config.Config, now time.Time) *editWorld {
	s := &editWorld{world: w, ctx: context.Background(), config: c, disk: newDisk(c.State.Dir)}
	time.Sleep(time.Until(now.Add(2 * time.Hour))) // files that are changed now count as old
	get := func() *config.Config { return c }
	s.stores = must(setup.BlocklistConfig(c, nil))
	s.stores.PollInterval, s.stores.Probes, s.stores.Logger = 100*365*24*time.Hour, -1, slog.New(slog.DiscardHandler)
	s.command = managed.New(get, nil)
	for _, name := range []string{"a", "b"} {
		s.lists = append(s.lists, &managedModel{name: name, path: filepath.Join(c.State.Dir, managed.Dir, name+".txt"), current: entries{}, may: []entries{{}}})
	}
	return s
}

func (s *editWorld) play(moves []move) (err error) {
	defer s.disk.close()
	err = s.open()
	for i, m := range moves {
		if err == nil {
			err = s.move(i+1, m.(*editMove))
		}
	}
	if err == nil {
		err = errors.Join(s.log(), s.serves())
	}
	if s.store != nil {
		s.disk.drain()
		err = errors.Join(err, s.store.Close())
	}
	if err == nil { // one more edit of each list removes what was left
		for _, l := range s.lists {
			err = errors.Join(err, s.edit(l, s.command, &editMove{what: "add", entries: []int{1}}))
		}
		err = errors.Join(err, s.leftovers())
	}
	return err
}

// open starts a gate.
func (s *editWorld) open() (err error) {
	for range 2 {
		if err = managed.Make(s.config); err == nil {
			s.store, err = store.Open(s.ctx, s.stores)
		}
		if err == nil || s.disk.isCrashed() || !s.disk.disarm() { // the disk had its fault
			break
		}
	}
	if s.disk.isCrashed() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the gate does not start: %w", err)
	}
	s.gate = managed.New(func() *config.Config { return s.config }, s.store)
	time.Sleep(10 * time.Second) // the store looks again soon after its start
	s.disk.drain()
	for _, l := range s.lists {
		l.live = true
	}
	return s.serves()
}

// move makes one move, with the trouble that comes meanwhile.
func (s *editWorld) move(n int, m *editMove) error {
	l := s.lists[m.list]
	s.world.tell("%d. %s in list %s, entries %v, by the gate: %t", n, m.what, l.name, m.entries, m.gate)
	var other error
	s.meddled = false
	if m.call > 0 {
		s.disk.arm(m.call, func(call string) error {
			s.world.tell("    %s at call %d: %s", m.trouble, s.disk.calls, call)
			switch m.trouble {
			case "crash":
				return s.disk.crash(call)
			case "error":
				return syscall.EIO
			case "full":
				return s.disk.fill(call)
			}
			if s.disk.runs == "" && !s.meddled {
				s.meddled = true
				if other = s.doing.found(); other != nil {
					return nil
				}
				s.world.tell("    a command: %s in list %s, entries %v", m.other.what, s.lists[m.other.list].name, m.other.entries)
				other = s.edit(s.lists[m.other.list], s.command, m.other)
			}
			return nil
		})
		s.disk.reading = m.read
	}
	err := errors.Join(s.act(l, m), other)
	synctest.Wait()
	s.disk.disarm()
	if s.disk.isCrashed() && err == nil {
		err = s.crash(m.seed)
	}
	if err == nil {
		err = s.serves()
	}
	return err
}

func (s *editWorld) act(l *managedModel, m *editMove) error {
	switch m.what {
	case "work":
		s.disk.drain()
		return nil
	case "restart":
		s.disk.drain()
		if err := s.store.Close(); err != nil || s.disk.isCrashed() {
			return err
		}
		s.store = nil
		return s.open()
	case "crash":
		_ = s.disk.crash("")
		return nil
	}
	editor := s.command
	if m.gate {
		editor = s.gate
	}
	return s.edit(l, editor, m)
}

// crash ends what ran, and starts again on what the disk has left.
func (s *editWorld) crash(seed uint64) error {
	s.world.tell("    the machine crashes")
	if s.store != nil {
		_ = s.store.Close()
		s.store = nil
	}
	s.disk.restart(rand.New(rand.NewPCG(seed, 0)))
	for _, l := range s.lists {
		if err := l.restarted(); err != nil {
			return err
		}
	}
	if err := s.log(); err != nil {
		return err
	}
	return s.open()
}

var keeper = managed.By{Name: "ann", Role: "editor", Through: managed.ThroughConsole, User: "gate"}

// edit makes the edits of a move, and compares what came of each.
func (s *editWorld) edit(l *managedModel, editor *managed.Editor, m *editMove) error {
	switch m.what {
	case "move":
		other := s.lists[1-m.list]
		if err := s.add(other, editor, m.entries[:1]); err != nil || s.disk.isCrashed() {
			return err
		}
		return s.remove(l, editor, m.entries[:1])
	case "remove":
		return s.remove(l, editor, m.entries)
	case "import":
		return s.replace(l, editor, m.entries)
	case "undo":
		return s.undo(editor, m)
	case "roll back":
		return s.rollBack(l, editor, m.arg)
	}
	return s.add(l, editor, m.entries)
}

// A doing is an edit that is being made.
type doing struct {
	list         *managedModel
	after        func(entries) // changes the entries as the edit is to change them
	before, want entries       // once another keeper has found it made
}

// found notes that a list has the edit before it has returned: another keeper's comes after it.
func (d *doing) found() error {
	if d == nil || d.want != nil {
		return nil
	}
	has, err := d.list.read()
	if err != nil || maps.Equal(has, d.list.current) {
		return err
	}
	before, want := d.list.current, maps.Clone(d.list.current)
	d.after(want)
	if !maps.Equal(has, want) {
		return fmt.Errorf("list %s has %v in the middle of an edit of %v that makes it %v", d.list.name, has, before, want)
	}
	d.before, d.want, d.list.current, d.list.may, d.list.live = before, want, has, append(d.list.may, has), false
	return nil
}

// make makes an edit, and compares what it has made of a list with what it is to make of what it
// found.
func (s *editWorld) make(l *managedModel, editor *managed.Editor, after func(entries), edit func() (managed.Result, error)) error {
	d := &doing{list: l, after: after}
	outer := s.doing
	s.doing = d
	r, err := edit()
	s.doing = outer
	s.world.tell("    %s", map[bool]string{true: "done", false: "failed"}[err == nil])
	acknowledged := err == nil && !s.disk.isCrashed()
	alone := d.want == nil // nobody has changed the list since
	if alone {
		d.before, d.want = l.current, maps.Clone(l.current)
		after(d.want)
		if err := l.edited(d.want, acknowledged); err != nil {
			return err
		}
	}
	if !acknowledged {
		return nil
	}
	if editor == s.gate && alone {
		l.live = r.Generation > 0 || l.live && !r.Changed
	}
	for _, o := range r.Entries {
		if o.Change != "" {
			s.changes = append(s.changes, &changeModel{id: o.Change, command: r.Change, list: l, entry: o.Entry, before: d.before[o.Entry], after: d.want[o.Entry]})
		}
	}
	return nil
}

func (s *editWorld) add(l *managedModel, editor *managed.Editor, numbers []int) error {
	var names []managed.NewEntry
	s.reasons++
	for _, n := range numbers {
		e := managed.NewEntry{Name: managed.Name{Entry: entryName(n)}, Reason: fmt.Sprintf("r%d", s.reasons)}
		if !slices.Contains(names, e) {
			names = append(names, e)
		}
	}
	return s.make(l, editor, func(list entries) {
		for _, n := range names {
			list[n.Entry] = n.Reason
		}
	}, func() (managed.Result, error) { return editor.Add(s.ctx, keeper, l.name, names, managed.Options{}) })
}

func (s *editWorld) remove(l *managedModel, editor *managed.Editor, numbers []int) error {
	var names []managed.Name
	for _, n := range numbers {
		if e := (managed.Name{Entry: entryName(n)}); !slices.Contains(names, e) {
			names = append(names, e)
		}
	}
	return s.make(l, editor, func(list entries) {
		for _, n := range names {
			delete(list, n.Entry)
		}
	}, func() (managed.Result, error) {
		return editor.Remove(s.ctx, keeper, l.name, names, managed.Options{})
	})
}

func (s *editWorld) replace(l *managedModel, editor *managed.Editor, numbers []int) error {
	s.reasons++
	text := "# imported\n"
	content := entries{}
	for _, n := range numbers {
		if _, twice := content[entryName(n)]; !twice {
			content[entryName(n)] = fmt.Sprintf("r%d", s.reasons)
			text += fmt.Sprintf("%s # r%d\n", entryName(n), s.reasons)
		}
	}
	return s.make(l, editor, becomes(content), func() (managed.Result, error) {
		return editor.Replace(s.ctx, keeper, l.name, managed.Replacement{Command: "import", Content: strings.NewReader(text)}, managed.Options{})
	})
}

func (s *editWorld) rollBack(l *managedModel, editor *managed.Editor, arg int) error {
	versions, err := editor.Versions(l.name)
	if err != nil || len(versions) == 0 {
		return nil
	}
	v := versions[arg%len(versions)]
	content := entries{}
	err = store.ExtractVersion(s.config.State.Dir, l.name, v.ID, func(_ string, from io.Reader) (err error) {
		content, err = l.parse(must(io.ReadAll(from)))
		return err
	})
	if err != nil {
		return err
	}
	return s.make(l, editor, becomes(content), func() (managed.Result, error) {
		return editor.Rollback(s.ctx, keeper, l.name, v.ID, managed.Options{})
	})
}

// becomes returns a change of a whole list.
func becomes(content entries) func(entries) {
	return func(list entries) {
		clear(list)
		maps.Copy(list, content)
	}
}

// undo undoes a change, or all that its command did.
func (s *editWorld) undo(editor *managed.Editor, m *editMove) error {
	if len(s.changes) == 0 {
		return nil
	}
	c := s.changes[m.arg%len(s.changes)]
	id, parts := c.id, []*changeModel{c}
	if m.arg%3 == 0 {
		id, parts = c.command, nil
		for _, part := range s.changes {
			if part.command == c.command {
				parts = append(parts, part)
			}
		}
	}
	if len(parts) > 1 && slices.ContainsFunc(parts, func(part *changeModel) bool { return part.perhaps }) {
		return nil // the log may say that some are undone
	}
	var can, sure []*changeModel
	for _, part := range parts {
		if !part.undone && c.list.current[part.entry] == part.after {
			if can = append(can, part); !part.perhaps {
				sure = append(sure, part)
			}
		}
	}
	clean := s.disk.pos == 0
	var err error
	wrong := s.make(c.list, editor, func(list entries) {
		for _, part := range can {
			if list[part.entry] = part.before; part.before == "" {
				delete(list, part.entry)
			}
		}
	}, func() (r managed.Result, _ error) {
		r, err = editor.Undo(s.ctx, keeper, id, managed.Options{})
		return r, err
	})
	s.world.tell("    of %s in list %s, %d entries", c.entry, c.list.name, len(can))
	switch {
	case wrong != nil:
		return wrong
	case err == nil && len(can) == 0:
		return fmt.Errorf("undone, although nothing in list %s is as the change of %s left it", c.list.name, c.entry)
	case err != nil && clean && len(sure) == len(parts):
		return fmt.Errorf("the change of %s in list %s is not undone: %w", c.entry, c.list.name, err)
	}
	for _, part := range can {
		if part.perhaps = part.perhaps || err != nil || s.disk.isCrashed(); !part.perhaps {
			part.undone = true
		}
	}
	return nil
}
