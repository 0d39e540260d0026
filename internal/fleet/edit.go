package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Edit is a change of a list on this gate.
type Edit struct {
	List              string
	Author, What, Why string
	Accepted          bool // a person wants this content: see Version

	SHA256 [sha256.Size]byte // of the new content
	Size   int64
	Old    *os.File      // the list's file, which is locked; nil: there is none
	New    io.ReadSeeker // the content that is to replace it
}

// Publish makes an edit the fleet's version of the list. The caller holds the lock of the
// list's file, replaces it if Publish succeeds, and calls done in any case then, with whether
// that went well. The error is ErrBehind if the file is not the fleet's newest version.
//
// An ErrOffline says that the edit is not acknowledged: it must not be made. In the rare case
// that the servers have it nevertheless, the list gets it as a version of the fleet.
func (m *Member) Publish(ctx context.Context, e Edit) (done func(placed bool), err error) {
	l, err := m.list(e.List)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.transferTime(e.Size))
	defer cancel()
	b, err := m.reach(ctx)
	if err != nil {
		m.counters.refused.Add(1)
		return nil, fmt.Errorf("the edit is refused: %w", err)
	}
	a, err := l.current(e.Old)
	if err != nil {
		return nil, err
	}
	v := l.newVersion(&a.Version, nil, hex.EncodeToString(e.SHA256[:]), e.Size)
	v.Author, v.What, v.Why, v.Accepted = shortened(e.Author), shortened(e.What), shortened(e.Why), e.Accepted
	done, err = l.proposeEdit(ctx, b, v, &a.Version, e.Old, e.New, a.Revision)
	if errors.Is(err, ErrOffline) || errors.Is(err, ErrReadOnly) {
		m.counters.refused.Add(1)
		err = fmt.Errorf("the edit is refused: %w", err)
	}
	return done, err
}

// current returns the applied version, if the file has it and the fleet has none that is
// newer, as far as this gate knows. If the fleet had lost it and has just got it back, gates with a
// newer one get the time to put that in its place.
func (l *list) current(file *os.File) (*applied, error) {
	if file == nil {
		return nil, ErrBehind
	}
	sum, err := l.digestOf(file)
	if err != nil {
		return nil, err
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	a, r := l.applied, l.remote
	waits := l.seeding || time.Since(l.returned) < l.m.o.times.resync+l.m.o.times.grace
	if waits || a == nil || r == nil || !l.fresh || r.version == nil || a.Revision != r.revision || a.Version.SHA256 != sum || l.pending != "" {
		return nil, ErrBehind
	}
	return a, nil
}

// proposeEdit publishes a content that is not in its place yet.
func (l *list) proposeEdit(ctx context.Context, b *buckets, v, before *Version, old *os.File, content io.ReadSeeker, revision uint64) (done func(placed bool), err error) {
	l.setPending(v.SHA256)
	var current uint64
	if old != nil {
		current, err = b.publish(ctx, l.key, v, before, old, content, revision)
	} else {
		current, err = b.publish(ctx, l.key, v, before, nil, content, revision)
	}
	if err != nil {
		l.setPending("")
		return nil, err
	}
	l.intend(v)
	return func(placed bool) {
		if placed {
			if err := l.note(v, current); err != nil {
				l.m.log.Warn("the version of a list is not noted", "list", l.Name, "error", err)
			}
		}
		l.setPending("")
	}, nil
}

// setPending says which content is about to replace the file; "": none. The list is left
// alone until then.
func (l *list) setPending(sha string) {
	l.m.mu.Lock()
	l.pending = sha
	l.m.notify()
	l.m.mu.Unlock()
	if sha == "" {
		l.look()
	}
}

// CatchUp applies the fleet's newest version of a list.
func (m *Member) CatchUp(ctx context.Context, name string) error {
	l, err := m.list(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.times.conflict)
	defer cancel()
	reachable, stop := context.WithTimeout(ctx, m.o.times.edit)
	defer stop()
	b, err := m.reach(reachable)
	if b == nil {
		return err
	}
	if err := m.onLink(reachable, func(ctx context.Context) error { return l.refresh(ctx, b) }); err != nil {
		return m.offline(err)
	}
	m.mu.Lock()
	next := l.begun + 1
	m.mu.Unlock()
	l.look()
	return l.settled(ctx, next)
}

// settled waits until the file has the fleet's version, or the look with a number, or a later
// one, has found out why it cannot.
func (l *list) settled(ctx context.Context, look uint64) (failed error) {
	err := l.m.wait(ctx, func() bool {
		a, r := l.applied, l.remote
		if l.looks >= look && l.err != nil && l.err != errLater && !errors.Is(l.err, errLost) {
			failed = l.err
			return true
		}
		return l.looks >= look && a != nil && r != nil && a.Revision == r.revision && l.pending == "" && !l.force
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the newest version of list %s did not come in time: %w", ErrOffline, l.Name, err)
	case err != nil:
		return err
	}
	return failed
}

// Retry calls edit until it does not fail because another gate was faster, and takes what that
// has changed in between. Edit locks the file, and calls Publish.
func (m *Member) Retry(ctx context.Context, list string, edit func() error) error {
	pause := m.o.times.retry / 50
	for deadline := time.Now().Add(m.o.times.conflict); ; pause = min(2*pause, m.o.times.retry) {
		err := edit()
		if !errors.Is(err, ErrBehind) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if err := m.CatchUp(ctx, list); err != nil {
			return fmt.Errorf("list %s: the edit is refused: %w", list, err)
		}
		m.sleep(ctx, pause)
	}
}
