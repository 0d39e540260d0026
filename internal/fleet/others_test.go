package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/fleet/fleettest"
)

// TestState shares values: a change reaches all gates, and a lost bucket changes nothing.
func TestState(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := startGate(t, "a", s, nil), startGate(t, "b", s, nil)
	key := StateKey("pin", "black.list")
	set := func(g *gate, value string) {
		t.Helper()
		if err := g.SetState(t.Context(), key, func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(value), nil }); err != nil {
			t.Fatal(err)
		}
	}
	reaches := func(g *gate, value string) {
		t.Helper()
		eventually(t, g.o.Name+" has "+value, func() bool { return string(g.State(key)) == value })
	}
	set(a, `"one"`)
	reaches(b, `"one"`)
	set(b, `"two"`)
	reaches(a, `"two"`)
	a.mu.Lock()
	if a.state[key] != `"two"` {
		t.Errorf("StateChanged was called with %q", a.state[key])
	}
	a.mu.Unlock()
	a.stop()
	set(b, `"three"`)
	b.stop()
	if err := client(t, s).DeleteStream(t.Context(), "KV_"+bucketState); err != nil {
		t.Fatal(err)
	}
	a.start() // publishes "two", which is older
	b.start()
	reaches(a, `"three"`)
	reaches(b, `"three"`)
	c := startGate(t, "c", s, nil)
	reaches(c, `"three"`)
	if what, name, ok := ParseStateKey(key); !ok || what != "pin" || name != "black.list" {
		t.Errorf("the key %s is read as %s, %s", key, what, name)
	}
}

// TestStateAtOnce changes a value on two gates at once: no change is lost.
func TestStateAtOnce(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := startGate(t, "a", s, nil), startGate(t, "b", s, nil)
	const n = 20
	errs := make(chan error, 2)
	for _, g := range []*gate{a, b} {
		go func() {
			var err error
			for range n {
				err = errors.Join(err, g.SetState(t.Context(), "accept.x", func(old json.RawMessage) (json.RawMessage, error) {
					var count int
					if old != nil {
						if err := json.Unmarshal(old, &count); err != nil {
							return nil, err
						}
					}
					return json.Marshal(count + 1)
				}))
			}
			errs <- err
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(2 * n)
	eventually(t, "both have "+want, func() bool { return string(a.State("accept.x")) == want && string(b.State("accept.x")) == want })
}

// TestMembers shows who is there, and what is wrong with whom.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a.example", s, func(o *Options) { o.Report = func() json.RawMessage { return json.RawMessage(`{"healthy":true}`) } })
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	twin := startGate(t, "b", s, nil)
	equal(t, "blocked", a, twin)
	startGate(t, "b", s, nil)
	var members []Presence
	eventually(t, "all are seen", func() bool {
		var err error
		members, err = a.Members(t.Context())
		return err == nil && len(members) == 3 && !slices.ContainsFunc(members, func(p Presence) bool { return len(p.Lists) != 1 || p.Lists[0].Sequence != 1 })
	})
	first := members[0]
	if first.Name != "a.example" || string(first.Report) != `{"healthy":true}` || first.Version != "test" || first.Clock.Abs() > time.Second {
		t.Errorf("got %+v", first)
	}
	if problems := Problems(members); len(problems) != 1 || problems[0] != "b: 2 gates have this name: give each its own [fleet] name" {
		t.Errorf("problems: %q", problems)
	}
	twin.stop()
	eventually(t, "it has left", func() bool {
		members, err := a.Members(t.Context())
		return err == nil && len(members) == 2
	})
	members[0].Clock, members[1].Name, members[2].Clash = -time.Hour, "c", "a clash"
	members[1].Lists = []ListStatus{{Name: "blocked", Error: "disk full"}}
	members[1].Twins, members[2].Twins, members[2].Lists = 0, 0, nil
	if got := strings.Join(Problems(members), "\n"); got != "a.example: its clock is 1h0m0s behind the servers' clock: let an NTP client set it\nc: list blocked: disk full\nb: a clash: give each gate its own [fleet] name and state directory" {
		t.Errorf("problems:\n%s", got)
	}
}

// TestCopiedGate starts a gate with a copy of another one's state directory: both say so.
func TestCopiedGate(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	b := newGate(t, "a", s, nil)
	for _, g := range []*gate{a, b} {
		if err := os.MkdirAll(filepath.Join(g.o.StateDir, dirName), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	id, err := os.ReadFile(filepath.Join(a.o.StateDir, dirName, nameOfID))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.o.StateDir, dirName, nameOfID), id, 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	eventually(t, "both say so", func() bool { return a.Status().Clash != "" && b.Status().Clash != "" })
	b.nc.Close() // it is killed
	b.Member.Close()
	eventually(t, "the one that is left says so no more", func() bool { return a.Status().Clash == "" })
}

// TestAsk asks all members. One of them cannot answer, and one does not.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	lasting := func(o *Options) { o.times.presence = 10 * time.Second }
	a, b, c, d := startGate(t, "a", s, lasting), startGate(t, "b", s, lasting), startGate(t, "c", s, lasting), startGate(t, "d", s, lasting)
	handle := func(g *gate, answer Answer) {
		if err := g.Handle("hits", answer); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range []*gate{a, b} {
		handle(g, func(_ context.Context, q []byte) ([]byte, error) { return []byte(g.o.Name + string(q)), nil })
	}
	handle(c, func(context.Context, []byte) ([]byte, error) { panic("a hostile question") })
	handle(d, func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	eventually(t, "all are seen", func() bool { m, err := a.Members(t.Context()); return err == nil && len(m) == 4 })
	if err := errors.Join(b.nc.Flush(), c.nc.Flush(), d.nc.Flush()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	r, err := a.Ask(ctx, "hits", []byte("?"))
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Answers["a"]) != "a?" || string(r.Answers["b"]) != "b?" || r.Errors["c"] == nil || !slices.Equal(r.Missing, []string{"d"}) {
		t.Errorf("got %+v", r)
	}
}

// TestClean removes contents that no list needs, and chunks of contents that were never
// complete.
func TestClean(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	js := client(t, s)
	for i := range historyContent + 3 {
		if err := a.edit("blocked", func(string) string { return noise(1000 + i) }); err != nil { // too long to be inline
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), chunkSubject("half"), []byte("half an object")); err != nil {
		t.Fatal(err)
	}
	objects, err := js.ObjectStore(t.Context(), bucketContent)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "OBJ_"+bucketContent)
	if err != nil {
		t.Fatal(err)
	}
	a.stop() // else what is stored for an edit would be removed before the edit is made
	a.o.times.clean, a.o.times.orphan = quick.resync, time.Nanosecond
	a.start()
	eventually(t, "the old ones are removed", func() bool {
		all, err := objects.List(t.Context())
		if err != nil || len(all) != historyContent {
			return false
		}
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(chunkSubject(">")))
		return err == nil && len(info.State.Subjects) == historyContent
	})
	b := startGate(t, "b", s, nil)
	equal(t, "blocked", a, b)
}

// TestCleanEdits wants the content to stay from which edits lead to the newest versions, and not the one before.
func TestCleanEdits(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, nil)
	a.write("blocked", noise(4000))
	a.start()
	first := equal(t, "blocked", a)
	if err := a.edit("blocked", func(string) string { return noise(5000) }); err != nil {
		t.Fatal(err)
	}
	root := equal(t, "blocked", a)
	for i := range 2 * historyContent {
		a.mustAdd("blocked", fmt.Sprintf("edit%d@example.net", i))
	}
	if v := a.noted("blocked"); root.Since != 0 || v.Since == 0 || v.Whole != root.SHA256 {
		t.Fatalf("%+v after %+v", v, root)
	}
	objects, err := client(t, s).ObjectStore(t.Context(), bucketContent)
	if err != nil {
		t.Fatal(err)
	}
	a.stop()
	a.o.times.orphan = time.Nanosecond
	a.start()
	equal(t, "blocked", a)
	buckets, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := buckets.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.GetInfo(t.Context(), fullName(root.SHA256)); err != nil {
		t.Errorf("the content from which edits lead on: %v", err)
	}
	if _, err := objects.GetInfo(t.Context(), fullName(first.SHA256)); !errors.Is(err, jetstream.ErrObjectNotFound) {
		t.Errorf("the content before: %v", err)
	}
}

// TestDeltas has a version with changes that only older gates can read: it is left alone until it is
// there as a whole.
func TestDeltas(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	v := equal(t, "blocked", a)
	own, next := a.read("blocked"), noise(2000)
	value := fmt.Appendf(nil, `{"format":1,"list":"blocked","kind":"managed","sequence":%d,"sha256":%q,"size":%d,"base":%q,`+
		`"snapshot":%[4]q,"snapshot_size":9,"deltas":[{"from":%[4]q,"to":%[2]q,"size":9}],"member":"old","time":"2026-11-01T00:00:00Z"}`,
		v.Sequence+1, shaOf(next), len(next), v.SHA256)
	js := client(t, s)
	kv, err := js.KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := kv.Put(t.Context(), "list.blocked", value)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gate misses it", func() bool { return errors.Is(a.failing("blocked"), errContent) })
	if e, err := kv.Get(t.Context(), "list.blocked"); err != nil || e.Revision() != revision || a.read("blocked") != own {
		t.Errorf("the gate has changed something: %v, %v", e, err)
	}
	objects, err := js.ObjectStore(t.Context(), bucketContent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.PutBytes(t.Context(), fullName(shaOf(next)), packed(t, next)); err != nil {
		t.Fatal(err)
	}
	has(t, "blocked", next, a)
	a.mustAdd("blocked", "two@example.net")
	if v := a.noted("blocked"); v.Since != 0 || v.Snapshot != v.SHA256 {
		t.Errorf("got %+v", v)
	}
}

// TestLeaves counts what a gate leaves behind on the server: nothing.
func TestLeaves(t *testing.T) {
	s := fleettest.Start(t, nil)
	js := client(t, s)
	a := startGate(t, "a", s, fetched)
	equal(t, "blocked", a)
	for range 10 {
		b := startGate(t, "b", s, fetched)
		equal(t, "blocked", a, b)
		b.stop()
	}
	for _, name := range streams {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "no consumers of b at "+name, func() bool {
			info, err := stream.Info(t.Context())
			return err == nil && info.State.Consumers <= 1
		})
	}
	eventually(t, "no connections of b", func() bool { return s.Connections() == 2 })
}

// TestReadOnly gives a gate a user who may only read: it takes versions, and refuses edits.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "secret"},
			{Username: "reader", Password: "secret", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"$JS.API.>", "$JS.FC.>", "$KV." + bucketMembers + ".>"}},
			}},
		}
	})
	as := func(user string) func(*Options) {
		return func(o *Options) {
			impatient(o)
			o.Servers = []string{strings.Replace(s.URL(), "//", "//"+user+":secret@", 1)}
		}
	}
	a, b := newGate(t, "a", s, as("all")), newGate(t, "b", s, as("reader"))
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	b.start()
	has(t, "blocked", "one@example.net\n", b)
	a.mustAdd("blocked", "two@example.net")
	equal(t, "blocked", a, b)
	if err := b.add("blocked", "three@example.net"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("the edit: %v", err)
	}
	if !b.Status().ReadOnly || a.Status().ReadOnly {
		t.Error("the status does not say it")
	}
	stranger, err := nats.Connect(s.URL())
	if err == nil {
		stranger.Close()
		t.Error("a client without credentials is let in")
	}
}

// TestCredentials reads the kinds of files with credentials.
func TestCredentials(t *testing.T) {
	s := fleettest.Start(t, func(o *server.Options) { o.Authorization = "a-shared-token" })
	file := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct {
		text string
		mode os.FileMode
		ok   bool
	}{
		{"a-shared-token\n", 0o600, true},
		{"a-shared-token", 0o640, true},
		{"a-shared-token", 0o644, false},
		{"", 0o600, false},
		{"two words", 0o600, false},
	} {
		if err := errors.Join(os.WriteFile(file, []byte(c.text), 0o600), os.Chmod(file, c.mode)); err != nil {
			t.Fatal(err)
		}
		g := newGate(t, "a", s, func(o *Options) { o.Credentials = file })
		m, err := Open(g.o)
		if (err == nil) != c.ok {
			t.Errorf("%q, %v: %v", c.text, c.mode, err)
		}
		if err != nil {
			continue
		}
		eventually(t, "it is connected", func() bool { return m.Status().Connected })
		m.Close()
	}
}

// TestNoSpace cannot write a version: the file stays, the status says why, and it is taken
// later.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a, b)
	work := filepath.Join(b.o.StateDir, workDir)
	if err := errors.Join(os.Remove(work), os.WriteFile(work, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a.mustAdd("blocked", "two@example.net")
	eventually(t, "the gate says it", func() bool { return b.failing("blocked") != nil })
	if got := b.read("blocked"); got != "one@example.net\n" {
		t.Errorf("the file has %q", got)
	}
	a.mustAdd("blocked", "three@example.net")
	if err := errors.Join(os.Remove(work), os.Mkdir(work, 0o700)); err != nil {
		t.Fatal(err)
	}
	equal(t, "blocked", a, b)
}

// TestWrongClocks has gates whose clocks are wrong: all see who they are, and edits go on.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	ahead := func(d time.Duration) func(*Options) {
		return func(o *Options) { o.times.ahead = d }
	}
	gates := []*gate{startGate(t, "a", s, nil), startGate(t, "b", s, ahead(2*time.Hour)), startGate(t, "c", s, ahead(-30*24*time.Hour))}
	equal(t, "blocked", gates...)
	for i, g := range append(gates, gates...) {
		g.mustAdd("blocked", fmt.Sprintf("%d@example.net", i))
	}
	equal(t, "blocked", gates...)
	if err := gates[2].SetState(t.Context(), "pin.x", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil }); err != nil {
		t.Fatal(err)
	}
	if err := gates[1].SetState(t.Context(), "pin.x", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("2"), nil }); err != nil {
		t.Fatal(err)
	}
	for _, g := range gates {
		eventually(t, "the value is there", func() bool { return string(g.State("pin.x")) == "2" })
		var text string
		eventually(t, "all are seen", func() bool {
			members, err := g.Members(t.Context())
			text = strings.Join(Problems(members), "\n")
			return err == nil && len(members) == 3 && !strings.Contains(text, "no version")
		})
		if want := "b: its clock is 2h0m0s ahead of the servers' clock: let an NTP client set it\nc: its clock is 720h0m0s behind the servers' clock: let an NTP client set it"; text != want {
			t.Errorf("%s says\n%s", g.o.Name, text)
		}
	}
	eventually(t, "b knows it", func() bool { return gates[1].Status().Clock > time.Hour })
}
