package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
)

// maxSteps bounds how many steps a look takes: each changes what the next one sees.
const maxSteps = 8

// reconcile does what is to be done with a list.
func (l *list) reconcile(ctx context.Context) error {
	for range maxSteps {
		again, err := l.step(ctx)
		if err != nil || !again {
			return err
		}
	}
	l.look() // it changes all the time
	return nil
}

// errLater says that a gate that never had a version of the fleet waits, so that gates that had
// one publish it first.
var errLater = errors.New("the fleet has no version of the list yet")

// step does one thing, and reports whether there may be more.
func (l *list) step(ctx context.Context) (again bool, err error) {
	l.m.mu.Lock()
	a, r, b, pending, force, reader := l.applied, l.remote, l.m.buckets, l.pending, l.force, l.m.mayOnlyRead() != nil
	l.m.mu.Unlock()
	switch {
	case r == nil || b == nil || pending != "":
		return false, nil
	case r.err != nil:
		return false, r.err
	}
	v := view{kind: l.Kind, remote: r.version, reader: reader}
	if a != nil {
		v.applied = &a.Version
	}
	if v.local, err = l.digest(); err != nil {
		return false, err
	}
	l.m.mu.Lock()
	moved := l.applied != a || l.remote != r || l.pending != ""
	l.m.mu.Unlock()
	if moved || l.unplaced(a, v.local) { // an edit has come in between: what was read does not belong together
		return true, nil
	}
	next := v.next()
	if force && v.remote != nil {
		next = stepTake
	}
	if next == stepLook {
		if next, err = l.lookBack(ctx, b, v.local); err != nil {
			return false, err
		}
	}
	switch next {
	case stepNone:
		if v.remote != nil && v.remote.SHA256 == v.local && a.Revision != r.revision {
			l.m.mu.Lock()
			if l.wasElsewhere(r.revision) { // another gate has put the version back
				l.returned = time.Now()
			}
			l.m.mu.Unlock()
			return false, l.note(v.remote, r.revision)
		}
		return false, nil
	case stepNote:
		return false, l.note(v.remote, r.revision)
	case stepTake:
		return true, l.take(ctx, b, v, r.revision)
	case stepSeed:
		return true, l.seed(ctx, b, v, r.revision)
	case stepPublish:
		if a == nil && time.Since(r.since) < l.m.o.times.grace {
			return false, errLater
		}
		return true, l.publishFile(ctx, b, v, r.revision)
	case stepJoin:
		return l.join(ctx, b, v, r.revision)
	}
	return false, ErrDiffers
}

// lookBack returns what to do with a file whose version is not the applied one: if the fleet
// had it once, the process ended before it could note that.
func (l *list) lookBack(ctx context.Context, b *buckets, local string) (step, error) {
	known, err := b.versions(ctx, l.Kind, l.Name)
	if err != nil {
		return stepNone, err
	}
	for _, v := range known {
		if v.SHA256 == local || v.Base == local {
			return stepTake, nil
		}
	}
	return stepDiffers, nil
}

// Earlier returns the content of the newest version of a list that is wanted and that the fleet
// has still, nil if there is none. The caller discards it.
func (m *Member) Earlier(ctx context.Context, name string, wanted func(sum [sha256.Size]byte) bool) (*atomicfile.File, error) {
	l, err := m.list(name)
	if err != nil {
		return nil, err
	}
	b, err := m.reach(ctx)
	if b == nil {
		return nil, err
	}
	known, err := b.versions(ctx, l.Kind, l.Name)
	if err != nil {
		return nil, m.offline(err)
	}
	for _, v := range slices.Backward(known) {
		var sum [sha256.Size]byte
		if _, err := hex.Decode(sum[:], []byte(v.SHA256)); err == nil && wanted(sum) {
			return b.load(ctx, v, nil, "", l.MaxBytes)
		}
	}
	return nil, nil
}

// take makes the fleet's version the file.
func (l *list) take(ctx context.Context, b *buckets, v view, revision uint64) error {
	own, err := l.open()
	if err != nil {
		return err
	}
	var from io.ReadSeeker
	if own != nil {
		defer own.Close()
		from = own
	}
	content, err := b.load(ctx, v.remote, from, v.local, l.MaxBytes)
	if err == nil {
		defer content.Discard()
		err = l.replaceWith(ctx, v, content.File)
	}
	if err != nil {
		return fmt.Errorf("taking %v: %w", v.remote, err)
	}
	return l.taken(v.remote, revision)
}

// replaceWith replaces the file by a content.
func (l *list) replaceWith(ctx context.Context, v view, content *os.File) error {
	return l.replace(ctx, v.remote, func(to io.Writer) error {
		_, err := io.Copy(to, content)
		return err
	}, v.local)
}

// taken notes that the file has a version of the fleet.
func (l *list) taken(v *Version, revision uint64) error {
	l.m.counters.applied.Add(1)
	l.m.log.Info("list taken from the fleet", "list", l.Name, "sequence", v.Sequence, "member", v.Member, "by", v.Author)
	l.m.mu.Lock()
	l.force, l.returned = false, time.Time{}
	if l.wasElsewhere(revision) { // perhaps it is not the newest that was put back
		l.returned = time.Now()
	}
	l.m.mu.Unlock()
	err := l.note(v, revision)
	if l.m.o.Applied != nil {
		l.m.o.Applied(l.Name, v)
	}
	return err
}

// errMoved says that somebody has changed the file between two steps.
var errMoved = errors.New("the file has changed meanwhile")

// replace replaces the file, which has the digest local, by what write writes, if that is the
// content of v.
func (l *list) replace(ctx context.Context, v *Version, write func(io.Writer) error, local string) error {
	if l.Kind == Accounts {
		return l.replaceAccounts(v, write, local)
	}
	if err := l.m.tree.MakeDirs(path.Dir(l.name)); err != nil {
		return err
	}
	o := listedit.Options{StateDir: l.m.o.StateDir, Create: true, Before: func(c listedit.Change) error {
		if hex.EncodeToString(c.SHA256[:]) != v.SHA256 {
			return errContent
		}
		if v.Accepted && l.m.o.Accept != nil {
			if err := l.m.o.Accept(l.Name, c.SHA256); err != nil {
				return err
			}
		}
		l.intend(v)
		return nil
	}}
	var placed fs.FileInfo
	o.Publish = func(_ context.Context, _ listedit.Change, _, content *os.File) (err error) {
		placed, err = content.Stat()
		return err
	}
	if l.Kind == Managed {
		o.Log, o.Record = &listedit.Log{Dir: l.m.o.StateDir}, l.record(v)
	}
	_, err := listedit.Rewrite(ctx, l.Path, func(old io.ReadSeeker, w io.Writer) error {
		if err := l.unmoved(old, local); err != nil {
			return err
		}
		return write(w)
	}, o)
	if err == nil {
		l.know(placed, v.SHA256)
	}
	if err == nil && len(v.Fetch) > 0 && l.Kind == Fetched {
		err = l.m.tree.WriteFile(l.name+fetchState, path.Dir(l.name), newFile, v.Fetch)
	}
	return err
}

// know notes the digest of the file.
func (l *listFile) know(info fs.FileInfo, sha string) {
	l.digestMu.Lock()
	defer l.digestMu.Unlock()
	l.info, l.sum = info, sha
}

// fetchState ends the name of the file beside a fetched copy that has its state.
const fetchState = ".json"

// unmoved returns an error if the file, which is locked now, does not have the digest local.
func (l *listFile) unmoved(old io.ReadSeeker, local string) error {
	f, ok := old.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return errMoved
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	l.digestMu.Lock()
	defer l.digestMu.Unlock()
	missing := !info.Mode().IsRegular() // listedit reads a missing file from a device
	if missing && local == "" || !missing && l.sum == local && unchanged(l.info, info) {
		return nil
	}
	return errMoved
}

// record returns what the audit log gets about a version from another gate.
func (l *list) record(v *Version) *listedit.Record {
	r := listedit.NewRecord("fleet", l.Name, l.Path)
	r.By, r.Through, r.Why = v.Author, "fleet", v.Why
	r.What = fmt.Sprintf("took sequence %d of %s: %s", v.Sequence, v.Member, v.What)
	return r
}

// newVersion returns a version with the content of the file that follows a and r.
func (l *list) newVersion(a, r *Version, sha string, size int64) *Version {
	v := &Version{
		Format: versionFormat, List: l.Name, Kind: l.Kind, Sequence: 1, SHA256: sha, Size: size,
		Member: l.m.o.Name, Time: l.m.now(),
	}
	if a != nil {
		v.Sequence, v.Base = a.Sequence+1, a.SHA256
	}
	if r != nil && r.Sequence >= v.Sequence {
		v.Sequence, v.Base = r.Sequence+1, r.SHA256
	}
	return v
}

// seed publishes the applied version, which the fleet has lost, again.
func (l *list) seed(ctx context.Context, b *buckets, v view, revision uint64) error {
	again := *v.applied
	l.setSeeding(true)
	defer l.setSeeding(false)
	published, err := l.propose(ctx, b, &again, nil, v.local, revision)
	if published || err != nil { // after an error it may be there nevertheless
		l.m.mu.Lock()
		l.returned = time.Now()
		l.m.mu.Unlock()
	}
	return err
}

// setSeeding notes that the applied version is about to be published again.
func (l *list) setSeeding(seeding bool) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.seeding = seeding
}

// wasElsewhere reports whether the applied version is one of a bucket that the servers have lost,
// or of a later state of the present one. The caller has the lock.
func (l *list) wasElsewhere(revision uint64) bool {
	a, b := l.applied, l.m.buckets
	if a == nil {
		return false
	}
	known := a.Revision
	if known == 0 && a.Before != nil { // noted before it was known, by a process that has ended
		known = a.Before.Revision
	}
	return known != 0 && (revision < known || b != nil && known < b.first)
}

// publishFile publishes the content of the file as a new version.
func (l *list) publishFile(ctx context.Context, b *buckets, v view, revision uint64) error {
	fresh := l.newVersion(v.applied, v.remote, v.local, 0)
	fresh.Accepted = l.Kind != Fetched // a person has edited it
	fresh.What = "published by the gate"
	if l.Kind == Fetched {
		if state, err := l.m.tree.ReadFile(l.name+fetchState, maxFetch); err == nil {
			fresh.Fetch = compactJSON(state)
		}
	}
	_, err := l.propose(ctx, b, fresh, v.remote, v.local, revision)
	return err
}

// propose publishes the file, which has the digest local, as v, unless another member is faster.
func (l *list) propose(ctx context.Context, b *buckets, v, before *Version, local string, revision uint64) (published bool, err error) {
	if err := l.m.onlyReads(ctx); err != nil {
		return false, err
	}
	file, err := l.open()
	if err != nil {
		return false, err
	}
	if file == nil {
		return false, errMoved
	}
	defer file.Close()
	sum, err := l.digestOf(file)
	if err != nil {
		return false, err
	}
	info, err := file.Stat()
	if err == nil && (sum != local || sum != v.SHA256) {
		err = errMoved
	}
	if err != nil {
		return false, err
	}
	v.Size = info.Size()
	ctx, cancel := context.WithTimeout(ctx, l.m.transferTime(v.Size))
	defer cancel()
	var old io.ReadSeeker
	if before != nil && v.Size >= minEdit {
		if content, err := b.load(ctx, before, nil, "", l.MaxBytes); err == nil { // else the whole is stored
			defer content.Discard()
			old = content
		}
	}
	revision, err = b.publish(ctx, l.key, v, before, old, file, revision)
	if errors.Is(err, ErrBehind) {
		if err := l.refresh(ctx, b); err != nil {
			return false, l.m.offline(err)
		}
		return false, nil // another member was faster: the next step sees what it has published
	}
	if err != nil {
		return false, err
	}
	return true, l.note(v, revision)
}
