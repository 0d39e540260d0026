package fleet

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/fleet/fleettest"
)

// TestSequence: a new version follows what this gate has and what the fleet has, or others would
// not take it.
func TestSequence(t *testing.T) {
	l := &list{m: &Member{link: &link{core: new(core)}}}
	v := func(sequence uint64, sha string) *Version { return &Version{Sequence: sequence, SHA256: sha} }
	for _, c := range []struct {
		applied, remote *Version
		want            uint64
		base            string
	}{
		{nil, nil, 1, ""},
		{v(3, "a"), nil, 4, "a"},
		{v(3, "a"), v(2, "b"), 4, "a"},
		{v(3, "a"), v(3, "a"), 4, "a"},
		{v(3, "a"), v(4, "b"), 5, "b"},
		{v(3, "a"), v(5, "b"), 6, "b"},
		{nil, v(1, "b"), 2, "b"},
	} {
		if got := l.newVersion(c.applied, c.remote, "new", 9); got.Sequence != c.want || got.Base != c.base {
			t.Errorf("after %v and %v: %d from %q, want %d from %q", c.applied, c.remote, got.Sequence, got.Base, c.want, c.base)
		}
	}
}

// TestUnmoved: a file that somebody has edited since the gate read it is not replaced by what the
// fleet has.
func TestUnmoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	write := func(text string, ago time.Duration) *os.File {
		t.Helper()
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil {
			err = os.Chtimes(path, time.Time{}, time.Unix(1e9, 0).Add(-ago))
		}
		file, openErr := os.Open(path)
		if err = errors.Join(err, openErr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	l := &list{}
	file := write("a.example\n", time.Hour)
	sum, err := l.digestOf(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.unmoved(file, sum); err != nil {
		t.Error(err)
	}
	if err := l.unmoved(write("aa.example\n", time.Hour), sum); !errors.Is(err, errMoved) {
		t.Errorf("longer: %v", err)
	}
	if err := l.unmoved(write("b.example\n", 0), sum); !errors.Is(err, errMoved) {
		t.Errorf("as long: %v", err)
	}
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if err := l.unmoved(none, sum); !errors.Is(err, errMoved) {
		t.Errorf("removed: %v", err)
	}
}

// TestObserveOlder: an older revision of a list's key, which a server that lags behind tells, is not
// believed, unless it is the answer to a question about the one that is known.
func TestObserveOlder(t *testing.T) {
	m := &Member{link: &link{core: &core{log: slog.New(slog.DiscardHandler)}, changed: make(chan struct{})}}
	l := m.newListFor(t)
	revision := func() uint64 { return l.remote.revision }
	for _, c := range []struct {
		revision uint64
		before   bool
		want     uint64
	}{{7, false, 7}, {9, false, 9}, {8, false, 9}, {9, false, 9}, {5, true, 5}, {6, false, 6}} {
		var before *remote
		if c.before {
			before = l.remote
		}
		l.observe(nil, c.revision, before)
		if got := revision(); got != c.want {
			t.Errorf("after %d: %d, want %d", c.revision, got, c.want)
		}
	}
}

// newListFor returns a list of a member that does not run.
func (m *Member) newListFor(t *testing.T) *list {
	m.ctx = t.Context()
	m.tree = atomicfile.In(t.TempDir())
	return m.newList(List{Name: "blocked", Kind: Managed, Path: m.tree.Path("managed/blocked.txt")})
}

// TestObserveOlderState: an older shared value, as a pin that was replaced since, counts nowhere.
func TestObserveOlderState(t *testing.T) {
	var told []string
	c := &core{
		tree: atomicfile.In(t.TempDir()), log: slog.New(slog.DiscardHandler),
		o: Options{StateChanged: func(_ string, value json.RawMessage) error { told = append(told, string(value)); return nil }},
	}
	m := &states{link: &link{core: c}, state: map[string]*shared{}, unused: map[string]bool{}, outdated: map[string]bool{}}
	if err := m.tree.MakeDirs(stateDir); err != nil {
		t.Fatal(err)
	}
	const key = "pin.blocked"
	for i, c := range []struct {
		sequence, revision uint64
		value, want        string
		outdated           bool
	}{
		{2, 10, `"two"`, `"two"`, false},
		{1, 11, `"one"`, `"two"`, true}, // somebody has put it back: this gate writes its own again
		{2, 12, `"two"`, `"two"`, false},
		{3, 13, `"three"`, `"three"`, false},
		{2, 12, `"two"`, `"three"`, true},
	} {
		value, err := json.Marshal(&shared{Format: versionFormat, Key: key, Sequence: c.sequence, Time: time.Unix(1e9, 0).UTC(), Value: json.RawMessage(c.value)})
		if err != nil {
			t.Fatal(err)
		}
		m.observeState(key, value, c.revision)
		if got := string(m.State(key)); got != c.want || m.outdated[key] != c.outdated || m.known(key).revision != c.revision {
			t.Errorf("%d: %s, outdated %v, revision %d", i, got, m.outdated[key], m.known(key).revision)
		}
	}
	if got := strings.Join(told, " "); got != `"two" "three"` {
		t.Errorf("the gate was told %s", got)
	}
}

// TestLeaseIsOver: a lease that was not renewed in time counts no more, and one that another member
// has taken is lost.
func TestLeaseIsOver(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, func(o *Options) { o.times.lease = time.Hour }) // it renews nothing during the test
	const key = "fetch.other"
	var b *buckets
	eventually(t, "a is connected", func() bool { b, _ = a.open(); return b != nil })
	take := func() {
		t.Helper()
		a.leases.renew(t.Context(), b, key)
	}
	take()
	if !a.leases.holds(key) {
		t.Fatal("a does not have the lease")
	}
	a.leases.mu.Lock()
	a.leases.held[key].until = time.Now().Add(-time.Second)
	a.leases.mu.Unlock()
	if a.leases.holds(key) {
		t.Error("a lease whose time is over counts")
	}
	take()
	if !a.leases.holds(key) {
		t.Error("it is not renewed")
	}
	kv, err := client(t, s).KeyValue(t.Context(), bucketLeases)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), key, []byte("b")); err != nil {
		t.Fatal(err)
	}
	take()
	if a.leases.holds(key) {
		t.Error("a lease that another member has taken counts")
	}
}

// TestCleanLeavesYoung: a content that no list needs yet, since it is being published, is not removed.
func TestCleanLeavesYoung(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	equal(t, "blocked", a)
	b, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	const name = "full.young"
	if err := b.put(t.Context(), name, strings.NewReader("a content")); err != nil {
		t.Fatal(err)
	}
	is := func() bool { _, err := b.content.GetInfo(t.Context(), name); return err == nil }
	if err := b.clean(t.Context()); err != nil || !is() {
		t.Errorf("the young one is gone, or %v", err)
	}
	a.Member.o.times.orphan = time.Nanosecond // nothing else reads it now
	if err := b.clean(t.Context()); err != nil || is() {
		t.Errorf("the old one is there, or %v", err)
	}
}
