package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"spamgate/internal/atomicfile"
)

// list is a shared list on this gate.
type list struct {
	List
	listFile
	m   *Member
	key string

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended for good
	wake   chan struct{}

	// Guarded by link.mu.
	applied  *applied
	remote   *remote   // nil: not known yet
	fresh    bool      // remote was read on this connection
	seeding  bool      // this gate is putting a version back that the fleet has lost
	returned time.Time // when the fleet got such a version back
	pending  string    // the digest of an own edit that is not in its place yet
	force    bool      // take the fleet's version whatever the file has
	err      error     // of the last look
	begun    uint64    // looks
	looks    uint64    // that have ended
	damaged  string    // how the fleet\'s version is damaged, as the log has it

	fetches *bool // what FetchesChanged was told; only leases.tellFetches uses it

	mu       sync.Mutex // guards what follows
	loaded   bool
	intended *Version // what intend has noted last
}

// listFile is a list's file, whose digest is read again only if the file looks changed.
type listFile struct {
	tree atomicfile.Tree
	name string // in the tree

	digestMu sync.Mutex // last
	info     fs.FileInfo
	sum      string
}

// applied is the version that a list's file had last; on disk it is in fleet/lists.
type applied struct {
	Version  Version `json:"version"`
	Revision uint64  `json:"revision"` // 0: not known

	// Before is the version before, if the process may have ended before the file got Version.
	Before *applied `json:"before,omitempty"`
}

// remote is what the fleet has of a list.
type remote struct {
	version  *Version  // nil: nothing that is valid
	revision uint64    // of the key; 0: there is no key
	err      error     // why no version can be taken or published
	since    time.Time // when it was first seen that there is no version
}

func (m *Member) newList(w List) *list {
	l := &list{List: w, m: m, key: keyOf(w.Kind, w.Name), done: make(chan struct{}), wake: make(chan struct{}, 1)}
	l.tree = m.tree
	l.name, _ = m.tree.Name(w.Path)
	l.ctx, l.cancel = context.WithCancel(m.ctx)
	return l
}

// seen returns the version that the file had last, and what the fleet has.
func (l *list) seen() (*applied, *remote) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return l.applied, l.remote
}

// look makes the list look at what there is to do.
func (l *list) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run keeps the list as the fleet has it.
func (l *list) run(ctx context.Context) error {
	if err := l.load(); err != nil {
		return err
	}
	logged, pause, failures := "", l.m.o.times.retry, 0
	for {
		l.apart()
		l.m.mu.Lock()
		l.begun++
		l.m.mu.Unlock()
		err := l.reconcile(ctx)
		if ctx.Err() != nil {
			return nil
		}
		err = withHint(err)
		l.m.mu.Lock()
		l.err, l.looks = err, l.begun
		l.m.notify()
		l.m.mu.Unlock()
		var again <-chan time.Time
		if err == nil {
			logged, pause, failures = "", l.m.o.times.retry, 0
		} else {
			failures++
			if err.Error() != logged && !errors.Is(err, ErrOffline) && !errors.Is(err, errLost) && err != errLater {
				logged = err.Error()
				l.m.log.Warn("a list is not as the fleet has it", "list", l.Name, "error", err)
			}
			again = time.After(pause)
			pause = min(2*pause, 60*l.m.o.times.retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
			if failures > patience { // perhaps somebody writes damaged versions all the time
				l.m.sleep(ctx, time.Duration(min(failures-patience, 10))*l.m.o.times.retry)
			}
		case <-again:
		}
	}
}

// patience is after how many failures a gate does not look at each version at once any more.
const patience = 3

// withHint adds to an error what to do about it.
func withHint(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free some space on this gate's disk; it tries again by itself", err)
	}
	return err
}

// RecordName returns the name of the file in the state directory that has the version of a list
// that was applied last. It is there once the gate shares the list.
func RecordName(kind Kind, list string) string { return path.Join(listsDir, keyOf(kind, list)+".json") }

// load reads which version was applied last. A damaged record counts as none.
func (l *list) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded {
		return nil
	}
	a, err := readRecord(l.m.tree, l.List)
	if err != nil {
		return err
	}
	if a != nil {
		l.m.mu.Lock()
		l.applied = a
		l.m.mu.Unlock()
	}
	l.loaded = true
	return nil
}

// readRecord reads which version of a list was applied last; nil if none was.
func readRecord(tree atomicfile.Tree, l List) (*applied, error) {
	text, err := tree.ReadFile(RecordName(l.Kind, l.Name), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a := new(applied)
	if json.Unmarshal(text, a) != nil || a.Version.check(l.Name, l.Kind) != nil {
		return nil, nil
	}
	if b := a.Before; b != nil && b.Version.check(l.Name, l.Kind) != nil {
		a.Before = nil
	}
	return a, nil
}

// intend notes on the disk that the file is about to get a version. If the process ends now, the
// next one sees by the file which of the two versions it has. Before the first version it notes
// nothing: then the file shows it alone.
func (l *list) intend(v *Version) {
	before, _ := l.seen()
	if before == nil {
		return
	}
	err := l.write(&applied{Version: *v, Before: &applied{Version: before.Version, Revision: before.Revision}})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.intended = nil; err == nil { // else note writes it
		l.intended = v
	}
}

// note notes that the file has a version. If that cannot be written to the disk it is noted
// for this process, and a later one finds out again. If the gate has just published it, the watch tells
// it later: until then the fleet's version must not look older.
func (l *list) note(v *Version, revision uint64) error {
	a := &applied{Version: *v, Revision: revision}
	l.m.mu.Lock()
	l.applied = a
	if r := l.remote; r != nil && r.revision < revision {
		l.remote = &remote{version: &a.Version, revision: revision}
	}
	l.m.notify()
	l.m.mu.Unlock()
	l.mu.Lock()
	written := l.intended == v
	l.intended = nil
	l.mu.Unlock()
	if written {
		return nil
	}
	return l.write(a)
}

func (l *list) write(a *applied) error {
	text, err := json.Marshal(a)
	if err == nil {
		err = l.m.tree.WriteFile(RecordName(l.Kind, l.Name), listsDir, newFile, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("noting which version of list %s this gate has: %w", l.Name, err)
	}
	return nil
}

// unplaced reports whether the file still has the version before a, and goes back to that.
func (l *list) unplaced(a *applied, local string) bool {
	if a == nil || a.Before == nil || local == a.Version.SHA256 || local != a.Before.Version.SHA256 {
		return false
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.applied == a {
		l.applied = a.Before
	}
	return true
}

// observe notes what the fleet has of a list. An older revision is ignored, since a server may lag
// behind, unless the bucket is certainly another one, or was put back, since before was known.
func (l *list) observe(value []byte, revision uint64, before *remote) {
	r := &remote{revision: revision}
	if value != nil {
		r.parse(l, value)
	}
	r.since = time.Now()
	l.m.mu.Lock()
	if l.remote != nil && l.remote.version == nil {
		r.since = l.remote.since
	}
	if l.remote == before || l.remote == nil || revision >= l.remote.revision {
		l.remote, l.fresh = r, true
		l.m.notify()
	}
	l.m.mu.Unlock()
	l.look()
}

// maxJump is how far a sequence may be ahead of the one that this gate has: no gate misses so
// many versions, and a hostile writer could use the numbers up.
const maxJump = 1_000_000_000

// errSequence says that a gate which never had a version of the list sees one with an improbable
// number. It cannot know whether the other gates believe it.
var errSequence = errors.New("it has a sequence that hardly can be true: spamgate fleet join --take takes it nevertheless")

// parse sets what the value of the list's key says. A damaged one counts as none: the newest
// gate publishes its own.
func (r *remote) parse(l *list, value []byte) {
	v, err := parseVersion(value, l.Name, l.Kind)
	l.m.mu.Lock()
	known := uint64(0)
	if l.applied != nil {
		known = l.applied.Version.Sequence
	}
	switch {
	case err != nil || v.Sequence <= known+maxJump:
	case known == 0 && !l.force:
		err = errSequence
	case known > 0:
		err = fmt.Errorf("it has the sequence %d, and this gate has %d", v.Sequence, known)
	}
	damaged := err != nil && !errors.Is(err, errNewer) && err != errSequence
	log := damaged && l.damaged != err.Error()
	if l.damaged = ""; damaged {
		l.damaged = err.Error()
	}
	l.m.mu.Unlock()
	switch {
	case err == nil:
		r.version = v
	case !damaged:
		r.err = fmt.Errorf("the fleet's version of list %s: %w", l.Name, err)
	case log:
		l.m.log.Warn("the fleet's version of a list is damaged", "list", l.Name, "error", err)
	}
}

// refresh reads what the fleet has of a list.
func (l *list) refresh(ctx context.Context, b *buckets) error {
	_, before := l.seen()
	value, revision, err := b.last(ctx, bucketLists, l.key)
	if err != nil {
		return err
	}
	if b.reads == nil && !l.putBack(ctx, revision) {
		before = nil
	}
	l.observe(value, revision, before)
	return nil
}

// refreshBriefly is refresh for what is asked again soon: an answer may be lost with a server.
func (l *list) refreshBriefly(ctx context.Context, b *buckets) error {
	ctx, cancel := l.m.brief(ctx)
	defer cancel()
	return l.refresh(ctx, b)
}

// putBack reports whether the bucket was put back to an earlier state: the leader of its servers,
// too, has an older revision than the one that is known.
func (l *list) putBack(ctx context.Context, revision uint64) bool {
	_, known := l.seen()
	if known == nil || known.revision <= revision {
		return false
	}
	newest, err := l.m.newestRevision(ctx, bucketLists, l.key)
	if err != nil || newest != revision { // the server that was asked lags behind
		return false
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.m.rewatch = l.m.rewatch || revision > 0
	return true
}

// digest returns the SHA-256 of the list's file; "" if there is none. It reads the file only
// if that looks changed.
func (l *listFile) digest() (string, error) {
	file, err := l.tree.Open(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	return l.digestOf(file)
}

// digestOf is digest for an open file. It leaves the file at another offset.
func (l *listFile) digestOf(file *os.File) (string, error) {
	l.digestMu.Lock()
	defer l.digestMu.Unlock()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if unchanged(info, l.info) {
		return l.sum, nil
	}
	sum, err := sumOf(file)
	if err != nil {
		return "", err
	}
	if current, err := file.Stat(); err == nil && unchanged(info, current) {
		l.info, l.sum = current, sum
	}
	return sum, nil
}

// open opens the list's file; nil if there is none.
func (l *listFile) open() (*os.File, error) {
	file, err := l.tree.Open(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}
