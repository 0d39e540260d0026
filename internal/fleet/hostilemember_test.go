package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/fleet/fleettest"
)

// count returns a number for a test: small, or what an environment variable says.
func count(t testing.TB, variable string, small int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return small
	}
	return n
}

// heap returns the bytes of live memory.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// flood writes n keys of one kind into a bucket, as fast as the server takes them.
func flood(t *testing.T, s *fleettest.Server, bucket string, n int, key func(i int) string, value func(i int) []byte) {
	t.Helper()
	js := client(t, s)
	for i := range n {
		if _, err := js.PublishMsgAsync(&nats.Msg{Subject: "$KV." + bucket + "." + key(i), Data: value(i)}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(5 * time.Minute):
		t.Fatal("the server does not take them")
	}
}

// TestManyKeys has somebody write very many keys (SPAMGATE_FLEET_KEYS) into the buckets: lists and
// values that no gate shares cost neither memory nor disk, and edits go on, also after a restart.
func TestManyKeys(t *testing.T) {
	n := count(t, "SPAMGATE_FLEET_KEYS", 1000)
	s := fleettest.Start(t, nil)
	needless := func(o *Options) {
		o.StateChanged = func(string, json.RawMessage) error { return ErrNotShared }
	}
	a, b := startGate(t, "a", s, needless), startGate(t, "b", s, needless)
	equal(t, "blocked", a, b)
	before := heap()
	long := strings.Repeat("x", 2000)
	flood(t, s, bucketLists, n, func(i int) string { return fmt.Sprintf("list.evil%d", i) }, func(i int) []byte {
		return fmt.Appendf(nil, `{"format":1,"list":"evil%d","kind":"managed","sequence":1,"why":%q}`, i, long)
	})
	flood(t, s, bucketState, n, func(i int) string { return fmt.Sprintf("pin.evil%d", i) }, func(int) []byte {
		return fmt.Appendf(nil, `{"format":1,"sequence":1,"value":%q}`, long)
	})
	b.stop()
	b.start()
	began := time.Now()
	a.mustAdd("blocked", "one@example.net")
	equal(t, "blocked", a, b)
	t.Logf("%d keys of each kind: an edit and a restart took %v, the live heap grew by %d KiB, with the server's", n, time.Since(began).Round(time.Millisecond), (int64(heap())-int64(before))>>10)
	for _, g := range []*gate{a, b} {
		g.valueMu.Lock()
		known := len(g.Member.state)
		g.valueMu.Unlock()
		entries, err := g.tree.ReadDir(stateDir)
		if err != nil || known+len(entries) > 0 {
			t.Errorf("%s knows %d values, and has %d files, %v", g.o.Name, known, len(entries), err)
		}
	}
}

// TestManyValues has somebody write very many values of kinds that a gate uses: it keeps a bounded
// number of them.
func TestManyValues(t *testing.T) {
	m := &states{state: map[string]*shared{}}
	value := json.RawMessage(strings.Repeat("1", maxShared))
	for i := 0; !m.stateFull(len(value)); i++ {
		m.state[fmt.Sprint("pin.", i)] = &shared{Value: value}
	}
	if n := len(m.state) * maxShared; n > maxState || n < maxState/2 {
		t.Errorf("%d bytes", n)
	}
}

// sign is a sign of life.
func sign(t *testing.T, p Presence) []byte {
	t.Helper()
	value, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestManyMembers has somebody show very many members of one name (SPAMGATE_FLEET_MEMBERS), and
// some whose names would do harm on a terminal: few are shown, and what is wrong is said once.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	n := count(t, "SPAMGATE_FLEET_MEMBERS", 500)
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, func(o *Options) { o.times.presence = time.Minute }) // so that nothing expires
	equal(t, "blocked", a)
	own := func() bool { all, err := a.Members(t.Context()); return err == nil && len(all) > 0 }
	eventually(t, "the gate shows itself", own)
	list := []ListStatus{{Name: "blocked", Error: "evil \x1b[2J\u202e " + strings.Repeat("x", 5000)}}
	flood(t, s, bucketMembers, n, func(i int) string { return fmt.Sprintf("a.evil%d", i) }, func(i int) []byte {
		return sign(t, Presence{Name: "a", Instance: fmt.Sprintf("evil%d", i), Version: "\x1b]0;evil\x07", Lists: list, Time: time.Now()})
	})
	for _, name := range []string{"../../etc", "\x1b[31m", strings.Repeat("x", 200), "a b", ""} {
		flood(t, s, bucketMembers, 1, func(int) string { return escaped(name) + ".evil" }, func(int) []byte { return sign(t, Presence{Name: name, Instance: "evil"}) })
	}
	var all []Presence
	eventually(t, "both kinds are seen", func() bool {
		var err error
		all, err = a.Members(t.Context())
		return err == nil && len(all) >= maxTwins && all[0].Twins >= min(n, maxMembers-10)
	})
	if len(all) > maxTwins+1 {
		t.Errorf("%d members are shown, the first with %d of its name", len(all), all[0].Twins)
	}
	mine := false
	for _, p := range all {
		mine = mine || p.Instance == a.id
	}
	problems := Problems(all)
	if text := strings.Join(append(problems, Notes(all)...), " "); !mine || len(problems) > maxProblems+1 || strings.ContainsAny(text, "\x1b\x07\u202e") || len(text) > 10_000 {
		t.Errorf("the own instance is shown: %v; %q", mine, problems)
	}
	if want := "gates have this name: give each its own [fleet] name"; strings.Count(strings.Join(problems, "\n"), want) != 1 {
		t.Errorf("%q", problems)
	}
}

// TestHostileVersions writes versions with numbers, times and texts that would do harm. The gate
// ignores those that cannot be true, and makes its own version the fleet's again.
func TestHostileVersions(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	a.mustAdd("blocked", "one@example.net")
	own := a.read("blocked")
	kv, err := client(t, s).KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	const format = `{"format":1,"list":"blocked","kind":"managed","sequence":%s,"sha256":"%s","snapshot":"%[2]s","time":"%[3]s","member":"evil"}`
	for name, value := range map[string]string{
		"2^63":                 fmt.Sprintf(format, "9223372036854775808", shaA, "2026-01-01T00:00:00Z"),
		"2^64-1":               fmt.Sprintf(format, fmt.Sprint(uint64(math.MaxUint64)), shaA, "2026-01-01T00:00:00Z"),
		"2^64":                 fmt.Sprintf(format, "18446744073709551616", shaA, "2026-01-01T00:00:00Z"),
		"the largest":          fmt.Sprintf(format, fmt.Sprint(uint64(maxSequence)), shaA, "2026-01-01T00:00:00Z"),
		"negative":             fmt.Sprintf(format, "-1", shaA, "2026-01-01T00:00:00Z"),
		"a digest with a path": fmt.Sprintf(format, "7", "../../../../etc/passwd", "2026-01-01T00:00:00Z"),
		"after the year 9999":  fmt.Sprintf(format, "7", shaA, "10000-01-01T00:00:00Z"),
		"not JSON":             strings.Repeat("[", 200_000),
		"another list":         strings.Replace(fmt.Sprintf(format, "7", shaA, "2026-01-01T00:00:00Z"), "blocked", "../blocked", 1),
		"the end of year 9999": fmt.Sprintf(format, "9223372036854775808", shaA, "9999-12-31T23:59:59-23:59"),
		"as long as can be":    `"` + strings.Repeat("x", maxValue) + `"`,
	} {
		revision, err := kv.Put(t.Context(), "list.blocked", []byte(value))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		eventually(t, name+": the gate's own version is the fleet's again", func() bool {
			e, err := kv.Get(t.Context(), "list.blocked")
			if err != nil || e.Revision() <= revision {
				return false
			}
			v, err := parseVersion(e.Value(), "blocked", Managed)
			return err == nil && v.SHA256 == shaOf(own)
		})
		if a.read("blocked") != own {
			t.Fatalf("%s: the list has changed", name)
		}
	}
	a.mustAdd("blocked", "two@example.net")
	if v := equal(t, "blocked", a); v.Sequence > 100 {
		t.Errorf("got %v", v)
	}
}

// TestImprobableSequence shows a new gate a list whose sequence it cannot judge: it neither takes
// nor replaces it, until an admin says so.
func TestImprobableSequence(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	v := equal(t, "blocked", a)
	a.stop()
	kv, err := client(t, s).KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	content := "one@example.net\n"
	v.Sequence, v.SHA256, v.Snapshot, v.Size = maxJump+7, shaOf(content), shaOf(content), int64(len(content))
	v.Inline = map[string][]byte{fullName(v.SHA256): packed(t, content)}
	value, err := v.encode()
	if err != nil {
		t.Fatal(err)
	}
	revision, err := kv.Put(t.Context(), "list.blocked", value)
	if err != nil {
		t.Fatal(err)
	}
	b := startGate(t, "b", s, nil)
	eventually(t, "the new gate says so", func() bool {
		err := b.failing("blocked")
		return err != nil && strings.Contains(err.Error(), errSequence.Error())
	})
	if e, err := kv.Get(t.Context(), "list.blocked"); err != nil || e.Revision() != revision {
		t.Fatalf("the fleet's version is replaced: %v", err)
	}
	if err := b.Take(t.Context(), "blocked"); err != nil {
		t.Fatal(err)
	}
	has(t, "blocked", content, b)
	b.mustAdd("blocked", "two@example.net")
}

// TestObjectLink stores a content as a link to itself, which the client library would follow for
// ever.
func TestObjectLink(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, func(o *Options) { o.times.edit = 200 * time.Millisecond })
	v := equal(t, "blocked", a)
	own := a.read("blocked")
	js := client(t, s)
	content, err := js.ObjectStore(t.Context(), bucketContent)
	if err != nil {
		t.Fatal(err)
	}
	name := fullName(shaA)
	meta := jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{Link: &jetstream.ObjectLink{Bucket: bucketContent, Name: name}}}, Bucket: bucketContent, NUID: "evil"}
	value, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), metaSubject(name), value); err != nil {
		t.Fatal(err)
	}
	if _, err := content.GetInfo(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	v.Sequence, v.SHA256, v.Snapshot, v.Size = v.Sequence+1, shaA, shaA, 1<<20
	if value, err = v.encode(); err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "list.blocked", value); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gate gives it up", func() bool {
		err := a.failing("blocked")
		return err != nil && strings.Contains(err.Error(), "reading "+name)
	})
	if a.read("blocked") != own {
		t.Error("the list has changed")
	}
}

// TestEditBombs offers edits of which each makes as much as is allowed from almost nothing, to a gate
// that has missed all of them.
func TestEditBombs(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	const most = 1 << 20
	a := newGate(t, "a", s, func(o *Options) { o.Lists[0].MaxBytes = most })
	a.write("blocked", "one@example.net\n")
	a.start()
	v := equal(t, "blocked", a)
	own := a.read("blocked")
	kv, err := client(t, s).KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	a.stop()
	lines := 1
	for i := range maxEdits {
		n := most/8 - 8
		script := fmt.Sprintf("d1 %d\na%d %d\n", lines, lines, n) + strings.Repeat(fmt.Sprintf("%07d\n", i), n)
		next := strings.Repeat(fmt.Sprintf("%07d\n", i), n)
		v.Sequence, v.Base, v.Whole, v.SHA256, v.Size = v.Sequence+1, v.SHA256, v.SHA256, shaOf(next), int64(len(next))
		if i == maxEdits-1 {
			v.SHA256 = shaB // what it makes has another digest
		}
		v.Snapshot, v.Inline, v.Edit, v.Since = v.SHA256, nil, packed(t, script), 1
		value, err := v.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Put(t.Context(), "list.blocked", value); err != nil {
			t.Fatal(err)
		}
		lines = n
	}
	began := time.Now()
	a.start()
	eventually(t, "the gate says it", func() bool {
		err := a.failing("blocked")
		return err != nil && strings.Contains(err.Error(), v.String()) && strings.Contains(err.Error(), "another digest")
	})
	t.Logf("%d edits to %d KiB each: refused in %v", maxEdits, most>>10, time.Since(began).Round(time.Millisecond))
	if a.read("blocked") != own {
		t.Error("the list has changed")
	}
}

// FuzzPresence wants signs of life to be bounded, printable, and to be encoded again.
func FuzzPresence(f *testing.F) {
	f.Add("mx1.abc", []byte(`{"name":"mx1","instance":"abc","version":"1","time":"2026-01-01T00:00:00Z","lists":[{"name":"blocked","sequence":7}],"report":{"lists":[]}}`))
	f.Add("mx1.abc", []byte(`{"name":"mx1","instance":"abc","time":"9999-12-31T23:59:59-23:59","clash":"\u001b[2J","twins":-7}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		p, ok := parseSign(key, value)
		if !ok {
			return
		}
		if !isName(p.Name) || escaped(p.Name)+"."+p.Instance != key || len(p.Lists) > maxListsShown || len(p.Report) > maxReport || p.Twins != 0 {
			t.Errorf("got %+v", p)
		}
		p.Clock = math.MinInt64
		for _, text := range append(Problems([]Presence{p}), Notes([]Presence{p, {Name: "other"}})...) {
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) || len(text) > 2*maxText+500 {
				t.Errorf("%q", text)
			}
		}
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	})
}

// FuzzReply wants answers to come only from members that were asked, once each.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"member":"mx1","answer":"e30="}`))
	f.Add([]byte(`{"member":"mx1","error":"\u001b[2J"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &Replies{Answers: map[string][]byte{}, Errors: map[string]error{}}
		waiting := map[string]bool{"mx1": true, "mx2": true}
		r.add(data, waiting)
		r.add(data, waiting)
		if n := len(r.Answers) + len(r.Errors); n+len(waiting) != 2 || n > 1 {
			t.Errorf("%d answers, and %d are missing", n, len(waiting))
		}
		for _, err := range r.Errors {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Errorf("%q", err)
			}
		}
	})
}
