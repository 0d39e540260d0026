package fleet

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/fleet/fleettest"
)

// client returns a client of the server, for what an operator or an attacker does.
func client(t testing.TB, s *fleettest.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestLostBuckets deletes buckets while gates run, and while they do not: no list changes, and
// the gates go on.
func TestLostBuckets(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	js := client(t, s)
	a, b := startGate(t, "a", s, nil), newGate(t, "b", s, nil)
	a.stop()
	a.write("blocked", "one@example.net\n")
	a.start()
	b.start()
	has(t, "blocked", "one@example.net\n", b)
	for _, bucket := range []string{"KV_" + bucketLists, "OBJ_" + bucketContent, "KV_" + bucketState, "KV_" + bucketMembers, "KV_" + bucketLeases} {
		if err := js.DeleteStream(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an edit after the loss of "+bucket, func() bool { return a.add("blocked", bucket+"@example.net") == nil })
		equal(t, "blocked", a, b)
	}
	a.stop()
	b.stop()
	before := a.read("blocked")
	for _, bucket := range streams {
		if err := js.DeleteStream(t.Context(), bucket); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
	}
	fresh := startGate(t, "fresh", s, nil) // publishes nothing: it has nothing
	b.start()
	has(t, "blocked", before, b, fresh)
	a.start()
	a.mustAdd("blocked", "last@example.net")
	equal(t, "blocked", a, b, fresh)
	has(t, "blocked", before+"last@example.net\n", a, b, fresh)
}

// TestOlderBucket puts the key of a list back: the newest gate publishes its version again.
func TestOlderBucket(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	js := client(t, s)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	has(t, "blocked", "one@example.net\n", a, b)
	equal(t, "blocked", a, b)
	kv, err := js.KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	old, err := kv.Get(t.Context(), "list.blocked")
	if err != nil {
		t.Fatal(err)
	}
	a.mustAdd("blocked", "two@example.net")
	a.mustAdd("blocked", "three@example.net")
	want := a.read("blocked")
	newest := equal(t, "blocked", a, b)
	for _, value := range [][]byte{old.Value(), []byte("{"), []byte(`{"format":1,"list":"other"}`), {}} {
		if _, err := kv.Put(t.Context(), "list.blocked", value); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the version is published again", func() bool {
			e, err := kv.Get(t.Context(), "list.blocked")
			if err != nil {
				return false
			}
			v, err := parseVersion(e.Value(), "blocked", Managed)
			return err == nil && v.Sequence == newest.Sequence && v.SHA256 == newest.SHA256
		})
		equal(t, "blocked", a, b)
	}
	if err := kv.Delete(t.Context(), "list.blocked"); err != nil {
		t.Fatal(err)
	}
	b.mustAdd("blocked", "four@example.net")
	equal(t, "blocked", a, b)
	has(t, "blocked", want+"four@example.net\n", a, b)
}

// TestNewerFormat leaves a version alone that a newer spamgate has written.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	kv, err := client(t, s).KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := kv.Put(t.Context(), "list.blocked", []byte(`{"format":2}`))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gate says it", func() bool { return errors.Is(a.failing("blocked"), errNewer) })
	if err := a.add("blocked", "two@example.net"); !errors.Is(err, errNewer) {
		t.Errorf("the edit: %v", err)
	}
	if e, err := kv.Get(t.Context(), "list.blocked"); err != nil || e.Revision() != revision {
		t.Errorf("the gate has changed it: %v, %v", e, err)
	}
}

// TestLostContent deletes contents that a new gate needs: a gate that has them stores them
// again.
func TestLostContent(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, nil)
	a.write("blocked", noise(4000))
	a.start()
	a.mustAdd("blocked", "two@example.net")
	v := equal(t, "blocked", a)
	if v.Since == 0 {
		t.Fatalf("got %+v", v)
	}
	js := client(t, s)
	objects, err := js.ObjectStore(t.Context(), bucketContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.Delete(t.Context(), fullName(v.Whole)); err != nil {
		t.Fatal(err)
	}
	b := startGate(t, "b", s, nil)
	equal(t, "blocked", a, b)
}

// TestServerGone refuses edits while no server answers, changes nothing then, and goes on
// afterwards.
func TestServerGone(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, impatient)
	a.write("blocked", "one@example.net\n")
	a.start()
	b := startGate(t, "b", s, nil)
	equal(t, "blocked", a, b)
	s.Stop()
	if err := a.add("blocked", "two@example.net"); !errors.Is(err, ErrOffline) {
		t.Errorf("the edit without a server: %v", err)
	}
	if got := a.read("blocked"); got != "one@example.net\n" {
		t.Errorf("the file has %q", got)
	}
	if st := a.Status(); st.Connected || st.Trouble == "" {
		t.Errorf("status: %+v", st)
	}
	b.stop()
	s.Restart()
	eventually(t, "an edit after the restart", func() bool { return a.add("blocked", "three@example.net") == nil })
	b.start()
	has(t, "blocked", "one@example.net\nthree@example.net\n", a, b)
}

// TestQuorum runs gates on three servers: with one of them an edit is refused, with two it is
// made.
func TestQuorum(t *testing.T) {
	if os.Getenv("SPAMGATE_E2E_FULL") != "1" {
		t.Skip("SPAMGATE_E2E_FULL is not set: to elect leaders takes the servers up to 9 s each time")
	}
	servers := fleettest.Cluster(t, 3)
	a := newGate(t, "a", servers[0], impatient)
	a.write("blocked", "one@example.net\n")
	a.start()
	b := startGate(t, "b", servers[1], impatient)
	equal(t, "blocked", a, b)
	info, err := client(t, servers[0]).Stream(t.Context(), "KV_"+bucketLists)
	if err != nil || info.CachedInfo().Config.Replicas != 3 {
		t.Fatalf("replicas: %+v, %v", info, err)
	}
	servers[2].Stop()
	eventually(t, "an edit with two servers", func() bool { return a.add("blocked", "two@example.net") == nil })
	equal(t, "blocked", a, b)
	servers[1].Stop()
	before := a.read("blocked")
	if err := a.add("blocked", "three@example.net"); !errors.Is(err, ErrOffline) {
		t.Errorf("the edit with one server: %v", err)
	}
	if got := a.read("blocked"); got != before {
		t.Errorf("the file has %q", got)
	}
	servers[1].Restart()
	servers[2].Restart()
	eventually(t, "an edit with all servers", func() bool { return b.add("blocked", "four@example.net") == nil })
	equal(t, "blocked", a, b)
}

// TestSpread has buckets that were made while their server was alone: they are put on three
// servers once these are there.
func TestSpread(t *testing.T) {
	t.Parallel()
	servers := fleettest.Cluster(t, 3)
	js := client(t, servers[0])
	for _, name := range streams[:2] {
		subject := "$KV." + strings.TrimPrefix(name, "KV_") + ".>"
		config := jetstream.StreamConfig{Name: name, Subjects: []string{subject}, MaxMsgsPerSubject: 1, Replicas: 1, AllowRollup: true, AllowDirect: true}
		eventually(t, "a bucket on one server", func() bool {
			_, err := js.CreateStream(t.Context(), config)
			return err == nil
		})
	}
	a, b := startGate(t, "a", servers[0], impatient), startGate(t, "b", servers[1], impatient)
	eventually(t, "the buckets are on three servers", func() bool {
		for _, name := range streams {
			s, err := js.Stream(t.Context(), name)
			if err != nil || s.CachedInfo().Config.Replicas != replicas {
				return false
			}
		}
		return true
	})
	// The servers may lose a question while they do this.
	eventually(t, "an edit", func() bool { return a.add("blocked", "one@example.net") == nil })
	equal(t, "blocked", a, b)
}

// TestUnnoted ends a gate between the steps of an edit and of an update: the next process finds
// out what it has.
func TestUnnoted(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a, b)
	record := a.o.StateDir + "/" + listsDir + "/list.blocked.json"
	var old []byte
	eventually(t, "the version is noted", func() bool {
		var err error
		old, err = os.ReadFile(record)
		return err == nil
	})
	a.mustAdd("blocked", "two@example.net")
	equal(t, "blocked", a, b)
	a.stop()
	b.mustAdd("blocked", "three@example.net")
	b.mustAdd("blocked", "four@example.net")
	if err := os.WriteFile(record, old, 0o600); err != nil {
		t.Fatal(err)
	}
	a.start()
	equal(t, "blocked", a, b)
	for _, damaged := range []string{"", "{", "{}"} {
		a.stop()
		if err := os.WriteFile(record, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		a.start()
		equal(t, "blocked", a, b)
	}
}

// TestFileLost takes the fleet's version if the file of a list is gone, also for an edit.
func TestFileLost(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	if err := os.Remove(a.path("blocked")); err != nil {
		t.Fatal(err)
	}
	has(t, "blocked", "one@example.net\n", a)
}

// TestChangedOutside leaves a managed list alone that somebody has edited by hand, until Take or
// Merge.
func TestChangedOutside(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a, b)
	for _, how := range []func(context.Context) error{
		func(ctx context.Context) error { return b.Take(ctx, "blocked") },
		func(ctx context.Context) error {
			_, err := b.Merge(ctx, "blocked", "ann", "")
			return err
		},
	} {
		b.write("blocked", "own@example.net\n")
		b.look("blocked")
		eventually(t, "the gate says it", func() bool { return errors.Is(b.failing("blocked"), ErrDiffers) })
		if err := b.add("blocked", "two@example.net"); !errors.Is(err, ErrDiffers) {
			t.Errorf("the edit: %v", err)
		}
		if got := b.read("blocked"); got != "own@example.net\n" {
			t.Errorf("the file has %q", got)
		}
		if err := how(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "blocked", a, b)
	}
	has(t, "blocked", "one@example.net\nown@example.net\n", a, b)
}

// TestStaleGate lets the first gate that comes back after the loss of a bucket be one that misses
// an edit. It takes no edits over what it has put back until the other gate has put back the newer
// one.
func TestStaleGate(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	newest, stale := newGate(t, "newest", s, nil), startGate(t, "stale", s, func(o *Options) { o.times.grace = 10 * time.Minute; o.times.conflict = time.Hour })
	newest.write("blocked", "one@example.net\n")
	newest.start()
	equal(t, "blocked", newest, stale)
	stale.stop()
	newest.mustAdd("blocked", "two@example.net")
	newest.stop()
	if err := client(t, s).DeleteStream(t.Context(), "KV_"+bucketLists); err != nil {
		t.Fatal(err)
	}
	stale.start()
	if v := equal(t, "blocked", stale); v.Sequence != 1 {
		t.Fatalf("the stale gate has %v", v)
	}
	tries := make(chan error, 1000)
	done := make(chan error)
	go func() {
		done <- stale.Retry(t.Context(), "blocked", func() error {
			err := stale.tryEdit("blocked", func(old string) string { return old + "three@example.net\n" })
			select {
			case tries <- err:
			default:
			}
			return err
		})
	}()
	if err := <-tries; !errors.Is(err, ErrBehind) {
		t.Errorf("the first try is answered with %v, want ErrBehind", err)
	}
	newest.start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	has(t, "blocked", "one@example.net\ntwo@example.net\nthree@example.net\n", newest, stale)
}

// TestDeletedKey reads keys that were deleted: what follows them needs the revisions of the marks.
func TestDeletedKey(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	g := startGate(t, "a", s, nil)
	b, err := g.reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := g.newList(List{Name: "other", Kind: Managed, Path: g.path("blocked")})
	defer l.cancel()
	for _, test := range []struct {
		bucket, key string
		revision    func() (uint64, error)
	}{
		{bucketLists, "list.other", func() (uint64, error) {
			err := l.refresh(t.Context(), b)
			if l.remote == nil || l.remote.version != nil {
				t.Errorf("the list has %v", l.remote)
				return 0, err
			}
			return l.remote.revision, err
		}},
		{bucketState, StateKey("pin", "other"), func() (uint64, error) {
			theirs, err := g.refreshState(t.Context(), b, StateKey("pin", "other"))
			return theirs.revision, err
		}},
	} {
		if got, err := test.revision(); got != 0 || err != nil {
			t.Errorf("%s: revision %d (%v) of a key that never was, want 0", test.bucket, got, err)
		}
		kv, err := client(t, s).KeyValue(t.Context(), test.bucket)
		if err != nil {
			t.Fatal(err)
		}
		put, err := kv.PutString(t.Context(), test.key, "{")
		if err != nil {
			t.Fatal(err)
		}
		if err := kv.Delete(t.Context(), test.key); err != nil {
			t.Fatal(err)
		}
		if got, err := test.revision(); got != put+1 || err != nil {
			t.Errorf("%s: revision %d (%v), want %d, that of the mark", test.bucket, got, err, put+1)
		}
	}
}
