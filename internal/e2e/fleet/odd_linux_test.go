package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

// readerPermissions are what docs/fleet.md gives to a gate that only reads, here with the name reader.
const readerPermissions = `permissions: {
  publish: { allow: ["spamgate.read.reader"] }
  subscribe: { allow: ["_INBOX.reader.>", "spamgate.ask.>"] }
  allow_responses: { max: 1, expires: "1m" }
}`

// oddFleet is a fleet of three good gates, on a server that knows a member's key and a reader's.
type oddFleet struct {
	server                   *harness.NATS
	member, reader, stranger string // seeds
	good                     []*member
	edits                    atomic.Int64
}

func startOddFleet(t *testing.T) *oddFleet {
	t.Helper()
	f := &oddFleet{}
	public := func(seed *string) string {
		kp, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		text, err := kp.Seed()
		if err != nil {
			t.Fatal(err)
		}
		*seed = string(text)
		key, err := kp.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	f.server = harness.NewNATS(t, fmt.Sprintf("authorization { users: [\n{ nkey: %s }\n{ nkey: %s, %s }\n] }\n", public(&f.member), public(&f.reader), readerPermissions))
	public(&f.stranger)
	f.server.Start()
	for _, name := range []string{"mx1", "mx2", "mx3"} {
		f.good = append(f.good, start(t, f.dir(t, name, f.member), name))
	}
	waitEqual(t, f.good...)
	return f
}

// dir returns the directory of a gate that has a seed.
func (f *oddFleet) dir(t *testing.T, name, seed string) string {
	t.Helper()
	s := setup(f.server, name)
	s.Tables = strings.Replace(s.Tables, "[fleet]\n", "[fleet]\ncredentials = \"seed\"\n", 1)
	s.Files = map[string]string{"seed": seed + "\n"}
	dir := s.Dir(t)
	if err := os.Chmod(filepath.Join(dir, "seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir, name string) *member {
	t.Helper()
	return &member{harness.Serve(t, dir), name}
}

// own gives a gate that has not started an entry, so that it does not wait for the fleet's list.
func own(t *testing.T, dir string) {
	t.Helper()
	harness.WriteFile(t, filepath.Join(dir, "state", "managed", "shared.txt"), "own.example\n")
	if err := os.Chmod(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// goOn edits the list on the first good gate, and wants all good gates to refuse what it has then.
// It returns a sender that they refuse.
func (f *oddFleet) goOn(t *testing.T) (sender string) {
	t.Helper()
	entry := fmt.Sprintf("edit%d.example", f.edits.Add(1))
	f.good[0].Lists(t, 0, "add", entry, "--reason", "while a member is odd")
	for _, g := range f.good {
		g.refuses(t, "a@"+entry)
	}
	return "a@" + entry
}

// told returns what a status says that is wrong or worth knowing.
func told(s admin.Fleet) string {
	return strings.Join(append(append([]string{s.Trouble}, s.Problems...), s.Notes...), "\n")
}

// says waits until a gate says something in its status.
func says(t *testing.T, m *member, want string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("%s says\n%s", m.name, last)
		}
	}()
	harness.WaitFor(t, fmt.Sprintf("%s says %q", m.name, want), func() bool {
		last = told(m.status())
		return strings.Contains(last, want)
	})
}

// TestOddMembers adds members with whom something is wrong: each is named, with what to do, and the
// other gates go on. The member with a wrong clock is only a sign of life here: internal/fleet has
// one that makes edits, too.
func TestOddMembers(t *testing.T) {
	t.Parallel()
	f := startOddFleet(t)
	first, third := f.good[0], f.good[2]
	for _, c := range []struct {
		name string
		try  func(t *testing.T)
	}{
		{"wrong credentials", func(t *testing.T) {
			dir := f.dir(t, "stranger", f.stranger)
			own(t, dir)
			odd := start(t, dir, "odd")
			says(t, odd, "the server refuses the credentials: put those of this fleet into the file that [fleet] names")
			odd.refuses(t, "a@own.example")
			odd.Lists(t, 2, "add", "stranger.example", "--reason", "not permitted")
			f.goOn(t)
			odd.Stop()
		}},
		{"credentials that others can read", func(t *testing.T) {
			dir := f.dir(t, "open", f.member)
			own(t, dir)
			if err := os.Chmod(filepath.Join(dir, "seed"), 0o644); err != nil {
				t.Fatal(err)
			}
			odd := start(t, dir, "odd")
			says(t, odd, "can be read or written by all users (mode -rw-r--r--): run chmod 600 on it")
			odd.refuses(t, "a@own.example")
			f.goOn(t)
			odd.Stop()
		}},
		{"credentials that only permit reading", func(t *testing.T) {
			odd := start(t, f.dir(t, "reader", f.reader), "reader")
			says(t, first, "credentials that only permit reading: reader: edits are refused there")
			if s := odd.Lists(t, 2, "add", "reader.example", "--reason", "not permitted"); !strings.Contains(s, fleet.ErrReadOnly.Error()) {
				t.Error(s)
			}
			odd.refuses(t, f.goOn(t))
			odd.Stop()
		}},
		{"a stolen name", func(t *testing.T) {
			odd := start(t, f.dir(t, "mx2", f.member), "mx2")
			says(t, first, "mx2: 2 gates have this name: give each its own [fleet] name")
			odd.refuses(t, f.goOn(t))
			odd.Stop()
		}},
		{"a copied state directory", func(t *testing.T) {
			dir := f.dir(t, "mx3", f.member)
			own(t, dir)
			id, err := os.ReadFile(filepath.Join(third.Dir, "state", "fleet", "id"))
			if err != nil {
				t.Fatal(err)
			}
			harness.WriteFile(t, filepath.Join(dir, "state", "fleet", "id"), string(id))
			odd := start(t, dir, "mx3")
			says(t, first, "mx3: another process uses this gate's name and a copy of its state directory: give each gate its own [fleet] name and state directory")
			f.goOn(t)
			odd.Stop()
		}},
		{"an older version", func(t *testing.T) {
			older, err := fleet.Open(fleet.Options{
				Name: "older", Version: "0.0.1", Servers: []string{"nats://" + f.server.Addr}, StateDir: t.TempDir(),
				Credentials: filepath.Join(first.Dir, "seed"),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer older.Close()
			says(t, first, "the members run different versions: 0.0.1 (older), ")
			f.goOn(t)
		}},
		{"a wrong clock", func(t *testing.T) {
			f.show(t, fleet.Presence{Name: "clock", Instance: "odd", Version: "1", Time: time.Now().Add(-2 * time.Hour)})
			says(t, first, "clock: its clock is 2h0m0s behind the servers' clock: let an NTP client set it")
			f.goOn(t)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.try(t)
		})
	}
}

// show writes a sign of life, as a member with a wrong clock would.
func (f *oddFleet) show(t *testing.T, p fleet.Presence) {
	t.Helper()
	option, err := nats.NkeyOptionFromSeed(filepath.Join(f.good[0].Dir, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect("nats://"+f.server.Addr, option)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "spamgate-members")
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), p.Name+"."+p.Instance, value); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk fills the disk of a member: it keeps its list, says what to do, and catches up.
func TestFullDisk(t *testing.T) {
	harness.PrivateMounts(t)
	n := harness.StartNATS(t)
	dir := setup(n, "odd").Dir(t)
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=16m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	good := &member{harness.LaunchGate(t, setup(n, "mx1")), "mx1"}
	odd := &member{harness.Serve(t, dir), "odd"}
	good.Addr = good.WaitListening()
	waitEqual(t, good, odd)
	good.Lists(t, 0, "add", "before.example", "--reason", "while there is space")
	odd.refuses(t, "a@before.example")
	filler, err := os.Create(filepath.Join(state, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	for size := 1 << 20; size > 0; {
		if _, err := filler.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	good.Lists(t, 0, "add", "full.example", "--reason", "while there is none")
	good.refuses(t, "a@full.example")
	says(t, good, "odd: list shared: ")
	says(t, good, "no space left on device: free some space on this gate's disk; it tries again by itself")
	odd.refuses(t, "a@before.example")
	odd.Lists(t, 2, "add", "refused.example", "--reason", "no space")
	good.Lists(t, 0, "add", "other.example", "--reason", "the others go on")
	if err := filler.Truncate(0); err != nil {
		t.Fatal(err)
	}
	odd.refuses(t, "a@full.example")
	odd.refuses(t, "a@other.example")
	waitEqual(t, good, odd)
	odd.Stop()
}
