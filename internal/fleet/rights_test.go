package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"spamgate/internal/fleet/fleettest"
)

// readerPermissions are those of docs/fleet.md.
func readerPermissions(name string) *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{ReadSubject(name)}},
		Subscribe: &server.SubjectPermission{Allow: []string{Inbox(name) + ".>", "spamgate.ask.>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
	}
}

// withReader starts a server with a user "all", and the user "reader" for the gate b, which only
// reads. As returns what lets a gate be one of them.
func withReader(t *testing.T) (s *fleettest.Server, as func(user string) func(*Options)) {
	t.Helper()
	s = fleettest.Start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "all", Password: "secret"}, {Username: "reader", Password: "secret", Permissions: readerPermissions("b")}}
	})
	return s, func(user string) func(*Options) {
		return func(o *Options) {
			o.Servers = []string{strings.Replace(s.URL(), "//", "//"+user+":secret@", 1)}
		}
	}
}

// kept is a log that a test reads.
type kept struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}

// TestReaderKeepsQuiet has a gate that only reads, on two connections: apart from one attempt on
// each it tries nothing that its credentials do not permit.
func TestReaderKeepsQuiet(t *testing.T) {
	t.Parallel()
	s, user := withReader(t)
	log := &kept{}
	as := func(name string) func(*Options) {
		return func(o *Options) {
			fetched(o)
			user(name)(o)
		}
	}
	a := newGate(t, "a", s, as("all"))
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	b := startGate(t, "b", s, func(o *Options) {
		as("reader")(o)
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	has(t, "blocked", "one@example.net\n", b)
	works := func() {
		t.Helper()
		eventually(t, "b knows that it only reads", func() bool { s := b.Status(); return s.Connected && s.ReadOnly })
		_, membersErr := b.Members(t.Context())
		_, askErr := b.Ask(t.Context(), "lists", nil)
		setErr := b.SetState(t.Context(), "gate.b", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		for _, err := range []error{membersErr, askErr, setErr} {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("got %v", err)
			}
		}
		b.sayMissing()
		signs := map[time.Time]bool{} // in whose time b would renew leases, too
		eventually(t, "a sees signs of life of b", func() bool {
			members, _ := a.Members(t.Context())
			for _, p := range members {
				if p.Name == "b" && p.ReadOnly {
					signs[p.Time] = true
				}
			}
			return len(signs) > 5
		})
	}
	works()
	s.Stop()
	s.Restart()
	works()

	// Without another gate it goes on with what it has, and says why.
	a.stop()
	eventually(t, "b knows that nobody answers", func() bool { return strings.Contains(b.Status().Trouble, errNobody.Error()) })
	has(t, "blocked", "one@example.net\n", b)
	a.start()
	a.mustAdd("blocked", "two@example.net")
	equal(t, "blocked", a, b)
	b.stop()
	if text := log.String(); strings.Contains(text, "do not permit") || !strings.Contains(text, "this gate only reads") {
		t.Errorf("the log has\n%s", text)
	}
}

// TestReaderContents has a gate that only reads take contents of all kinds: small ones, large ones in
// many chunks, edits, and one that is made while it is away; shared values, and earlier versions.
func TestReaderContents(t *testing.T) {
	t.Parallel()
	s, as := withReader(t)
	a := newGate(t, "a", s, as("all"))
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	b := startGate(t, "b", s, as("reader"))
	equal(t, "blocked", a, b)

	large := noise(60_000) // 3.5 MB, 27 chunks of NATS
	if err := a.edit("blocked", func(string) string { return large }); err != nil {
		t.Fatal(err)
	}
	equal(t, "blocked", a, b)
	for i := range 5 {
		a.mustAdd("blocked", fmt.Sprintf("edit%d@example.net", i))
	}
	v := equal(t, "blocked", a, b)
	if v.Since == 0 {
		t.Errorf("the version is no edit: %+v", v)
	}
	if err := a.edit("blocked", func(old string) string { return lines(30_000, "x") + old }); err != nil {
		t.Fatal(err)
	}
	equal(t, "blocked", a, b)

	// An earlier version was put into the file while the gate did not run.
	b.stop()
	a.mustAdd("blocked", "away@example.net")
	b.write("blocked", large)
	b.start()
	equal(t, "blocked", a, b)

	if err := a.SetState(t.Context(), StateKey("pin", "blocked"), func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`"v1"`), nil }); err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // more than one answer has
		value, _ := json.Marshal(strings.Repeat("x", 8000))
		if err := a.SetState(t.Context(), StateKey("accept", fmt.Sprint(i)), func(json.RawMessage) (json.RawMessage, error) { return value, nil }); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "b has the shared values", func() bool {
		return string(b.State(StateKey("pin", "blocked"))) == `"v1"` && len(b.States("accept")) == 200
	})

	earlier, err := b.Earlier(t.Context(), "blocked", func(sum [sha256.Size]byte) bool { return sum == sha256.Sum256([]byte(large)) })
	if err != nil || earlier == nil {
		t.Fatalf("an earlier version: %v, %v", earlier, err)
	}
	defer earlier.Discard()
	if text, err := io.ReadAll(earlier); err != nil || string(text) != large {
		t.Errorf("the earlier version has %d bytes, %v", len(text), err)
	}
	if err := b.add("blocked", "b@example.net"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an edit: %v", err)
	}
}

// readsFrom returns a server, and a gate that only reads and has the list of another one.
func readsFrom(t *testing.T) (*fleettest.Server, *gate) {
	t.Helper()
	s, as := withReader(t)
	a := newGate(t, "a", s, as("all"))
	a.write("blocked", "one@example.net\n")
	a.start()
	b := startGate(t, "b", s, func(o *Options) {
		as("reader")(o)
		o.times.edit = 500 * time.Millisecond
	})
	equal(t, "blocked", a, b)
	return s, b
}

// TestReaderOnNewConnection has a gate that only reads try changes when it has just connected again, and
// does not know yet that the server does not permit them.
func TestReaderOnNewConnection(t *testing.T) {
	t.Parallel()
	_, b := readsFrom(t)
	b.connected(b.nc)
	if err := b.tryEdit("blocked", func(old string) string { return old + "two@example.net\n" }); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an edit: %v", err)
	}
	set := func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil }
	if err := b.SetState(t.Context(), StateKey("pin", "blocked"), set); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a value: %v", err)
	}
}

// TestReaderOffline has a gate that only reads ask for versions when it cannot reach the fleet.
func TestReaderOffline(t *testing.T) {
	t.Parallel()
	s, b := readsFrom(t)
	s.Stop()
	eventually(t, "b knows that it is alone", func() bool { return !b.Status().Connected })
	if _, err := b.Earlier(t.Context(), "blocked", func([sha256.Size]byte) bool { return true }); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an earlier version: %v", err)
	}
	if err := b.Take(t.Context(), "blocked"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("the newest version: %v", err)
	}
}

// spy calls see for each question of the gate b, which gates answer.
func spy(t *testing.T, s *fleettest.Server, see func(readQuestion)) {
	t.Helper()
	nc, err := nats.Connect(strings.Replace(s.URL(), "//", "//all:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe(ReadSubject("b"), func(m *nats.Msg) {
		var q readQuestion
		if err := json.Unmarshal(m.Data, &q); err != nil {
			t.Error(err)
		}
		see(q)
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// signal says on a channel with room for one that something has happened.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// TestReaderAsksAnew has a gate that only reads connect again: it asks for the value of a list whose
// revision it knows, since an older state may have been put back.
func TestReaderAsksAnew(t *testing.T) {
	t.Parallel()
	s, as := withReader(t)
	a := newGate(t, "a", s, as("all"))
	a.write("blocked", "one@example.net\n")
	a.start()
	knows, anew := make(chan struct{}, 1), make(chan struct{}, 1)
	spy(t, s, func(q readQuestion) {
		switch {
		case q.Do == askList && q.Revision > 0:
			signal(knows)
		case q.Do == askList:
			signal(anew)
		}
	})
	b := startGate(t, "b", s, as("reader"))
	<-knows
	select {
	case <-anew: // the first time
	default:
	}
	if err := b.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-anew:
	case <-time.After(20 * time.Second):
		t.Error("it does not ask for the value")
	}
}

// TestReaderLosesMember has a gate that only reads take a large content while the gate that answers
// it ends: another one goes on.
func TestReaderLosesMember(t *testing.T) {
	t.Parallel()
	s, as := withReader(t)
	a, c := newGate(t, "a", s, as("all")), newGate(t, "c", s, as("all"))
	a.write("blocked", noise(12_000)) // 6 chunks of NATS
	a.start()
	c.start()
	equal(t, "blocked", a, c)
	asked := make(chan struct{}, 1)
	spy(t, s, func(q readQuestion) {
		if q.Do == askChunk {
			signal(asked)
		}
	})
	b := startGate(t, "b", s, as("reader"))
	<-asked
	a.stop()
	equal(t, "blocked", c, b)
}

// TestReaderAsksAgain has the shared values change between two answers to a gate that only reads:
// it asks for all of them again, and once it has them all, only for those that it does not have.
func TestReaderAsksAgain(t *testing.T) {
	t.Parallel()
	s, as := withReader(t)
	nc, err := nats.Connect(strings.Replace(s.URL(), "//", "//all:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	first := make(chan string, 10) // the sums with which the gate begins to ask
	sums := []string{"before", "between", "after", "after"}
	_, err = nc.Subscribe(ReadSubject("b"), func(m *nats.Msg) {
		var q readQuestion
		if err := json.Unmarshal(m.Data, &q); err != nil {
			t.Error(err)
		}
		a := readAnswer{Same: true}
		if q.Do == askState {
			if q.After == "" {
				first <- q.Sum
			}
			if q.Sum != "after" {
				key := StateKey("pin", fmt.Sprint(len(sums)))
				a = readAnswer{Values: []readValue{{Key: key, Value: []byte(`{"value": 1}`), Revision: 1}}, More: q.After == "", Sum: sums[0]}
				sums = sums[1:]
			}
		}
		text, err := json.Marshal(&a)
		if err == nil {
			err = m.Respond(text)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	startGate(t, "b", s, as("reader"))
	for i, want := range []string{"", "", "after"} {
		select {
		case got := <-first:
			if got != want {
				t.Errorf("question %d is for all but %q, want %q", i+1, got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("question %d does not come", i+1)
		}
		if i == 1 {
			if err := nc.Publish(changedSubject, []byte("list.blocked 1")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
