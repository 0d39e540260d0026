package world

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"

	"spamgate/internal/atomicfile"
)

// A disk is a directory on a disk that fails where it is told, and that forgets at a crash what was
// not synced: the content of a file but for a part of it, and names that were made, moved and
// removed, in any choice that keeps the order of what concerns one name.
//
// It knows each file by its inode, and compares the directory with what it knows after each call
// that the product makes: what differs was changed by the call, in one step.
type disk struct {
	root  string
	top   *inode
	known map[uint64]*inode
	made  int
	steps []*change // that were not synced

	// What happens at the call number at, counted from the last arm; 0: nothing. With reading, those
	// that open a file count, and no others.
	pos     int
	reading bool
	happens func(what string) error
	calls   int
	full    bool // no space is left
	crashed bool

	mu      sync.Mutex
	waiting map[string][]chan struct{} // background work that has to wait, by its function
	runs    string                     // the one that may go on
}

// An inode is a directory or a file.
type inode struct {
	number int               // in the order in which they came up
	names  map[string]*inode // nil: a file
	synced map[string]*inode // as a crash leaves it, if all steps are forgotten

	content []byte // of a file, when it was synced
	last    []byte // before it lost a name
}

// A change is one step: the names that it gave and took.
type change struct {
	dirs    []*inode
	names   []string
	to      []*inode
	durable bool
}

var errCrash = errors.New("the machine has crashed")

// newDisk makes a disk of a directory, and of all calls of package atomicfile below it until close.
func newDisk(root string) *disk {
	d := &disk{root: root, waiting: map[string][]chan struct{}{}}
	d.load()
	atomicfile.Hook = d.call
	return d
}

func (d *disk) close() { atomicfile.Hook = nil }

// arm lets something happen at a call: the next one is number 1.
func (d *disk) arm(pos int, happens func(what string) error) {
	d.calls, d.pos, d.happens, d.reading = 0, pos, happens, false
}

// disarm ends what arm began, and reports whether it has happened.
func (d *disk) disarm() (happened bool) {
	happened = d.pos > 0 && d.calls >= d.pos
	d.pos, d.full = 0, false
	return happened
}

// fill is what happens when the disk is full: nothing is made or written until disarm.
func (d *disk) fill(string) error { d.full = true; return nil }

// crash is what happens when the machine crashes: no call does anything any more.
func (d *disk) crash(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crashed = true
	for _, queue := range d.waiting {
		for _, ch := range queue {
			close(ch)
		}
	}
	clear(d.waiting)
	return errCrash
}

// call takes the place of a call of the file system.
func (d *disk) call(c atomicfile.Call) error {
	switch c.Op {
	case "stat", "read", "lock", "use":
		return c.Do()
	case "watch":
		return errors.New("files are only polled here") // events come when they like
	case "wait": // for another process, which waits in turn until this one has failed
		return errors.New("another process is at it")
	case "mkdir":
		if exists(c.Paths[0]) {
			return c.Do()
		}
	case "open": // for reading, or to make a file
		if exists(c.Paths[0]) {
			if d.reading && backgroundOf() == "" {
				if d.calls++; d.calls == d.pos {
					_ = d.happens(d.describe(c))
				}
			}
			return c.Do()
		}
		d.turn()
		if d.isCrashed() {
			return errCrash
		}
		err := c.Do()
		if err == nil {
			d.look(c.Op, c.Paths)
		}
		return err
	}
	if c.File == nil && !strings.HasPrefix(c.Paths[0], d.root) {
		return c.Do()
	}
	d.turn()
	if c.Op == "remove" && !d.isCrashed() {
		if err := d.removeBelow(c.Paths[0]); err != nil {
			return err
		}
	}
	return d.step(c)
}

// step makes a call, or lets happen what is to happen at it.
func (d *disk) step(c atomicfile.Call) error {
	if d.isCrashed() {
		return errCrash
	}
	if !d.reading {
		d.calls++
	}
	if d.calls == d.pos && !d.reading {
		if err := d.happens(d.describe(c)); err != nil {
			if len(c.Data) > 1 && !d.crashed { // half of it
				_, _ = c.File.Write(c.Data[:len(c.Data)/2])
			}
			return err
		}
	}
	if d.full && slices.Contains([]string{"create", "mkdir", "write", "link"}, c.Op) {
		return syscall.ENOSPC
	}
	for _, path := range c.Paths {
		if c.Op != "rename" && c.Op != "remove" {
			break
		}
		if n, _, _ := d.find(path); n != nil && n.names == nil {
			n.last = read(path)
		}
	}
	err := c.Do()
	d.look(c.Op, c.Paths)
	if err == nil && c.Op == "sync" {
		d.sync(c)
	}
	return err
}

func (d *disk) isCrashed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crashed
}

// removeBelow removes what is in a directory, a file at a time.
func (d *disk) removeBelow(path string) error {
	n, _, _ := d.find(path)
	if n == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		below := filepath.Join(path, name)
		err := d.removeBelow(below)
		if err == nil {
			err = d.step(atomicfile.Call{Op: "remove", Paths: []string{below}, Do: func() error { return os.Remove(below) }})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var temporary = regexp.MustCompile(`[A-Z2-7]{26}|[0-9]{8}T[0-9]{6}\.[0-9]{3}Z|\b[0-9]{2,}\b`)

// describe names a call for the story.
func (d *disk) describe(c atomicfile.Call) string {
	paths := c.Paths
	if c.File != nil {
		paths = []string{c.File.Name()}
	}
	text := c.Op
	for _, p := range paths {
		text += " " + temporary.ReplaceAllString(strings.TrimPrefix(p, d.root+"/"), "*")
	}
	return text
}

// find returns what the disk knows at a path: nil if there is nothing.
func (d *disk) find(path string) (n, dir *inode, name string) {
	n = d.top
	for name = range strings.SplitSeq(strings.Trim(strings.TrimPrefix(path, d.root), "/"), "/") {
		if name == "" {
			return n, nil, ""
		}
		if dir = n; dir == nil || dir.names == nil {
			return nil, nil, ""
		}
		n = dir.names[name]
	}
	return n, dir, name
}

// look notes what a call has changed at its paths.
func (d *disk) look(op string, paths []string) {
	c := &change{}
	for _, path := range paths {
		was, dir, name := d.find(path)
		if info, err := os.Lstat(path); err == nil && was == nil && slices.Contains([]string{"create", "mkdir", "open"}, op) {
			delete(d.known, info.Sys().(*syscall.Stat_t).Ino) // of a file that is gone
		}
		if dir == nil {
			continue
		}
		if is := d.here(path); is != was {
			c.dirs, c.names, c.to = append(c.dirs, dir), append(c.names, name), append(c.to, is)
		}
	}
	if len(c.dirs) == 0 {
		return
	}
	for i, dir := range c.dirs {
		set(dir.names, c.names[i], c.to[i])
	}
	d.steps = append(d.steps, c)
}

// here returns the inode that is at a path now.
func (d *disk) here(path string) *inode {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return d.inode(info)
}

func (d *disk) inode(info fs.FileInfo) *inode {
	number := info.Sys().(*syscall.Stat_t).Ino
	n := d.known[number]
	if n == nil {
		d.made++
		n = &inode{number: d.made}
		if info.IsDir() {
			n.names, n.synced = map[string]*inode{}, map[string]*inode{}
		}
		d.known[number] = n
	}
	return n
}

func set(names map[string]*inode, name string, n *inode) {
	if n == nil {
		delete(names, name)
	} else {
		names[name] = n
	}
}

// sync notes what a sync has made durable: the content of a file, or all steps that concern a
// directory, with those that they follow.
func (d *disk) sync(c atomicfile.Call) {
	if c.File != nil {
		if info, err := c.File.Stat(); err == nil {
			d.inode(info).content = read(fmt.Sprintf("/proc/self/fd/%d", c.File.Fd()))
		}
		return
	}
	dir, _, _ := d.find(c.Paths[0])
	for i, s := range d.steps {
		if slices.Contains(s.dirs, dir) {
			d.settle(i)
		}
	}
	d.apply(func(s *change) bool { return s.durable })
}

// settle makes a step durable.
func (d *disk) settle(i int) {
	d.steps[i].durable = true
	for j := range i {
		if !d.steps[j].durable && d.steps[i].follows(d.steps[j]) {
			d.settle(j)
		}
	}
}

// follows reports whether one of the step's names is one of an earlier one.
func (c *change) follows(earlier *change) bool {
	for i, dir := range c.dirs {
		for j, other := range earlier.dirs {
			if dir == other && c.names[i] == earlier.names[j] {
				return true
			}
		}
	}
	return false
}

// apply makes steps a part of what stays.
func (d *disk) apply(stays func(*change) bool) {
	d.steps = slices.DeleteFunc(d.steps, func(s *change) bool {
		if !stays(s) {
			return false
		}
		for i, dir := range s.dirs {
			set(dir.synced, s.names[i], s.to[i])
		}
		return true
	})
}

// restart puts into the directory what a crash has left of it.
func (d *disk) restart(r *rand.Rand) {
	lost := []float64{0, 0.5, 1}[r.IntN(3)]
	var forgotten []*change
	d.apply(func(s *change) bool {
		if r.Float64() < lost || slices.ContainsFunc(forgotten, s.follows) {
			forgotten = append(forgotten, s)
			return false
		}
		return true
	})
	var files []*inode
	current := map[*inode][]byte{}
	walk(d.top, false, "", func(path string, n *inode) {
		if n.names == nil {
			current[n] = read(filepath.Join(d.root, path))
		}
	})
	left := map[string]*inode{}
	walk(d.top, true, "", func(path string, n *inode) {
		left[path] = n
		if n.names == nil && !slices.Contains(files, n) {
			files = append(files, n)
		}
	})
	slices.SortFunc(files, func(a, b *inode) int { return cmp.Compare(a.number, b.number) })
	content := map[*inode][]byte{}
	for _, n := range files {
		whole, ok := current[n]
		if !ok {
			whole = n.last
		}
		content[n] = n.afterCrash(whole, r)
	}
	for _, e := range must(os.ReadDir(d.root)) {
		check(os.RemoveAll(filepath.Join(d.root, e.Name())))
	}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		if n := left[path]; n.names != nil {
			check(os.Mkdir(filepath.Join(d.root, path), 0o700))
		} else {
			check(os.WriteFile(filepath.Join(d.root, path), content[n], 0o600))
		}
	}
	d.crashed, d.pos, d.full = false, 0, false
	d.load()
}

// afterCrash returns what is left of a file's content: what was synced, and all, half or nothing
// of what came after that.
func (n *inode) afterCrash(whole []byte, r *rand.Rand) []byte {
	draw := r.IntN(3)
	if bytes.Equal(whole, n.content) {
		return whole
	}
	kept := 0
	if bytes.HasPrefix(whole, n.content) {
		kept = len(n.content)
	}
	return whole[:kept+(len(whole)-kept)*draw/2]
}

// walk calls do for each file and directory below one, as the disk knows them or as a crash leaves
// them.
func walk(dir *inode, synced bool, path string, do func(path string, n *inode)) {
	names := dir.names
	if synced {
		names = dir.synced
	}
	for name, n := range names {
		do(filepath.Join(path, name), n)
		walk(n, synced, filepath.Join(path, name), do)
	}
}

// load learns what is in the directory, all of which is synced.
func (d *disk) load() {
	d.known, d.steps, d.top = map[uint64]*inode{}, nil, nil
	d.top = d.here(d.root)
	d.loadBelow(d.top, d.root)
}

func (d *disk) loadBelow(dir *inode, path string) {
	for _, e := range must(os.ReadDir(path)) {
		n := d.here(filepath.Join(path, e.Name()))
		dir.names[e.Name()], dir.synced[e.Name()] = n, n
		if n.names != nil {
			d.loadBelow(n, filepath.Join(path, e.Name()))
		} else {
			n.content = read(filepath.Join(path, e.Name()))
		}
	}
}

// unseen returns an error if the directory has changed without a call: a simulation misses that.
func (d *disk) unseen() error {
	known := map[string]bool{}
	walk(d.top, false, "", func(path string, n *inode) {
		if n.names == nil {
			known[path] = true
		}
	})
	for _, path := range files(d.root) {
		if !known[path] {
			return fmt.Errorf("%s was made without package atomicfile's Call", path)
		}
		delete(known, path)
	}
	for path := range known {
		return fmt.Errorf("%s was removed without package atomicfile's Call", path)
	}
	return nil
}

// files returns the paths of the files in a directory and below it.
func files(dir string) (paths []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return nil
	})
	return paths
}

// background are the functions whose goroutines work on the disk beside others. They wait until
// drain lets one of them go on: so that the calls come in the same order each time.
var background = []string{"store.(*Store).archiveAll", "store.(*Store).settle"}

// turn waits until the goroutine that calls may work.
func (d *disk) turn() {
	name := backgroundOf()
	if name == "" {
		return
	}
	d.mu.Lock()
	if d.crashed || d.runs == name {
		d.mu.Unlock()
		return
	}
	ch := make(chan struct{})
	d.waiting[name] = append(d.waiting[name], ch)
	d.mu.Unlock()
	<-ch
}

// backgroundOf returns which of the background functions called this one; "" if none did.
func backgroundOf() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		for _, name := range background {
			if strings.HasSuffix(f.Function, name) {
				return name
			}
		}
		if !more {
			return ""
		}
	}
}

// drain lets the background work, one after the other, until all is done.
func (d *disk) drain() {
	for {
		synctest.Wait()
		d.mu.Lock()
		var ch chan struct{}
		for _, name := range background {
			if queue := d.waiting[name]; len(queue) > 0 {
				ch, d.waiting[name], d.runs = queue[0], queue[1:], name
				break
			}
		}
		d.mu.Unlock()
		if ch == nil {
			return
		}
		close(ch)
		synctest.Wait()
		d.mu.Lock()
		d.runs = ""
		d.mu.Unlock()
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func read(path string) []byte { b, _ := os.ReadFile(path); return b }

// must and check are for calls of the simulation itself.
func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		panic(err)
	}
}
