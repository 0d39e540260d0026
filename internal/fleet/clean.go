package fleet

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cleanUp removes contents that nobody needs any more and puts the buckets on three servers,
// while the member has the lease for that, and stores again what the servers have lost. A member
// that only reads does nothing of that.
func (m *Member) cleanUp(ctx context.Context) error {
	if err := m.wait(ctx, func() bool { return m.writer }); err != nil {
		return nil // the member is closed
	}
	asked := make(chan struct{}, 1)
	sub, err := m.nc.Subscribe(missingSubject, func(*nats.Msg) {
		select {
		case asked <- struct{}{}:
		default: // it is looked after soon
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	tick := time.NewTicker(m.o.times.clean)
	defer tick.Stop()
	grown := time.NewTicker(m.o.times.lease) // servers that start together find each other soon after a gate has made the buckets
	defer grown.Stop()
	for {
		clean, wanted := false, false
		select {
		case <-ctx.Done():
			return nil
		case <-asked:
			wanted = true
		case <-grown.C:
			if b, err := m.open(); err == nil && m.leases.holds(cleaning) {
				b.spread(ctx)
			}
			continue
		case <-tick.C:
			clean = m.leases.holds(cleaning)
		}
		m.sleep(ctx, m.o.times.retry) // so that not all members do it
		b, err := m.open()
		if err != nil || !m.mayWrite() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, m.o.times.clean+m.o.times.edit)
		err = m.mend(ctx, b, wanted)
		if clean {
			err = errors.Join(err, b.clean(ctx))
		}
		cancel()
		if err != nil {
			return err
		}
	}
}

// missingSubject is where members say that the content of a current version is missing.
const missingSubject = "spamgate.missing"

// sayMissing asks the other members to store what is missing. A member that only reads may not:
// others look by themselves, from time to time.
func (m *link) sayMissing() {
	if !m.mayWrite() {
		return
	}
	_ = m.nc.Publish(missingSubject, nil) // asked again if the content does not come
}

// age returns how old something is that a server has dated.
func (m *link) age(t time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now().Sub(t) + m.clock
}

// mend stores the contents of current versions that the object store has lost, and if wanted those
// that it never had, since edits lead there: somebody misses one.
func (m *Member) mend(ctx context.Context, b *buckets, wanted bool) error {
	for _, l := range m.all() {
		a, r := l.seen()
		if a == nil || r == nil || r.version == nil || a.Revision != r.revision {
			continue
		}
		whole, err := b.isWhole(ctx, r.version, wanted)
		if err != nil || whole {
			if err != nil {
				return err
			}
			continue
		}
		if err := l.storeAgain(ctx, b, r.version); err != nil {
			return fmt.Errorf("storing the content of list %s again: %w", l.Name, err)
		}
	}
	return nil
}

// isWhole reports whether the object store has the content of a version, or if it does not matter
// which, that from which edits lead there.
func (b *buckets) isWhole(ctx context.Context, v *Version, itself bool) (bool, error) {
	if v.Inline[fullName(v.SHA256)] != nil {
		return true, nil
	}
	_, err := b.content.GetInfo(ctx, fullName(v.SHA256))
	if errors.Is(err, jetstream.ErrObjectNotFound) && v.Since > 0 && !itself {
		_, err = b.content.GetInfo(ctx, fullName(v.Whole))
	}
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}

// storeAgain stores the file's content, if the file has the version.
func (l *list) storeAgain(ctx context.Context, b *buckets, v *Version) error {
	file, err := l.open()
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	if sum, err := l.digestOf(file); err != nil || sum != v.SHA256 {
		return err
	}
	return b.storeFull(ctx, v.SHA256, file)
}

// clean removes objects that no version needs, and that are old enough not to belong to one
// that is being published.
func (b *buckets) clean(ctx context.Context) error {
	needed, err := b.needed(ctx)
	if err != nil {
		return err
	}
	objects, err := b.content.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	stream, err := b.js.Stream(ctx, "OBJ_"+bucketContent)
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(chunkSubject(">")))
	if err != nil {
		return err
	}
	chunks := info.State.Subjects
	for _, o := range objects {
		subject := chunkSubject(o.NUID)
		delete(chunks, subject)
		if needed[o.Name] || b.age(o.ModTime) < b.o.times.orphan {
			continue
		}
		// First its description, so that nobody begins to read it.
		for _, s := range []string{metaSubject(o.Name), subject} {
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(s)); err != nil {
				return err
			}
		}
		b.log.Debug("removed a content from the fleet that no list needs", "name", o.Name)
	}
	for subject := range chunks { // of objects that were never completed
		last, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil || b.age(last.Time) < b.o.times.orphan {
			continue
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
	}
	return nil
}

// The subjects of an object's chunks, and of its description (NATS ADR-20).
func chunkSubject(nuid string) string { return "$O." + bucketContent + ".C." + nuid }
func metaSubject(name string) string {
	return "$O." + bucketContent + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// maxVersions bounds the versions that are looked at at once.
const maxVersions = 500_000

// needed returns the objects of the newest versions of all lists, also of those that this gate
// does not share.
func (b *buckets) needed(ctx context.Context) (map[string]bool, error) {
	w, err := b.lists.WatchAll(ctx, jetstream.IncludeHistory())
	if err != nil {
		return nil, err
	}
	defer stop(w)
	versions, count := map[string][]*Version{}, 0
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case e, ok := <-w.Updates():
			if !ok {
				return nil, errors.New("the watch has ended")
			}
			if e == nil {
				return namesOf(versions), nil
			}
			v, err := parseAny(e)
			if err != nil {
				return nil, err
			}
			if v == nil {
				continue
			}
			v.Inline, v.Edit, v.Fetch = nil, nil, nil
			versions[e.Key()] = append(versions[e.Key()], v)
			if count++; count > maxVersions {
				return nil, fmt.Errorf("the fleet has more than %d versions of lists: somebody else writes there", maxVersions)
			}
		}
	}
}

// parseAny parses a version of any list; nil if there is none. Contents of versions that only a
// newer spamgate understands are not removed by this one.
func parseAny(e jetstream.KeyValueEntry) (*Version, error) {
	group, part, _ := strings.Cut(e.Key(), ".")
	name, ok := unescaped(part)
	if !ok || e.Operation() != jetstream.KeyValuePut {
		return nil, nil
	}
	for _, kind := range []Kind{Managed, Fetched, Accounts} {
		if kind == Accounts != (group == string(Accounts)) {
			continue
		}
		v, err := parseVersion(e.Value(), name, kind)
		if err == nil {
			return v, nil
		}
		if errors.Is(err, errNewer) {
			return nil, fmt.Errorf("the key %s: %w", e.Key(), err)
		}
	}
	return nil, nil
}

// namesOf returns the objects of the newest versions, and of those from which edits lead there.
func namesOf(versions map[string][]*Version) map[string]bool {
	names := map[string]bool{}
	for _, all := range versions {
		first := max(0, len(all)-historyContent)
		for first > 0 && all[first].Since > 0 {
			first--
		}
		for _, v := range all[first:] {
			names[fullName(v.SHA256)] = true
		}
	}
	return names
}
