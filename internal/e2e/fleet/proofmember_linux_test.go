package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
	"spamgate/internal/managed"
)

// count returns how often a proof does something, or how long it takes: what an environment
// variable says, or one of two.
func count(t testing.TB, variable string, usual, full int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return harness.IfFull(usual, full)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// listed is an entry that all gates have from the first edit on.
const listed = "listed.example"

// startFleet starts gates that use some servers each, and adds the entry listed.
func startFleet(t testing.TB, servers ...[]string) []*member {
	t.Helper()
	var all []*member
	for i, urls := range servers {
		name := fmt.Sprintf("mx%d", i+1)
		s := harness.Setup{
			Tables: fmt.Sprintf("[fleet]\nname = %q\nservers = [\"%s\"]\n", name, strings.Join(urls, `", "`)),
			Lists:  "[[list]]\nname = \"shared\"\nmanaged = true\nfleet = true\n",
		}
		all = append(all, &member{harness.LaunchGate(t, s), name})
	}
	for _, m := range all {
		m.Addr = m.WaitListening()
	}
	harness.WaitFor(t, "the fleet takes an edit", func() bool { return all[0].edit("add", listed) == nil })
	waitAlike(t, all...)
	return all
}

// same returns n times the same servers.
func same(n int, urls []string) (all [][]string) {
	for range n {
		all = append(all, urls)
	}
	return all
}

// dial returns a client of the admin socket of the gate in a directory.
func dial(dir string) (*admin.Client, error) {
	return admin.Dial(filepath.Join(dir, "state", "admin.sock"))
}

// edit adds an entry to the list, or removes it.
func (m *member) edit(what, entry string) error {
	c, err := dial(m.Dir)
	if err != nil {
		return err
	}
	defer c.Close()
	return edit(c, what, entry)
}

func edit(c *admin.Client, what, entry string) error {
	ctx, cancel := context.WithTimeout(context.Background(), harness.WorkTimeout)
	defer cancel()
	name := managed.Name{Entry: entry}
	var r managed.Result
	var err error
	if what == "add" {
		r, err = admin.Call(ctx, c, admin.OpAdd, admin.AddRequest{Entries: []managed.NewEntry{{Name: name, Reason: "proof"}}}, "shared")
	} else {
		r, err = admin.Call(ctx, c, admin.OpRemove, admin.RemoveRequest{Entries: []managed.Name{name}}, "shared")
	}
	if err == nil && r.NotLive != "" {
		err = errors.New("not live: " + r.NotLive)
	}
	return err
}

// noted returns the version that the gate has noted on its disk.
func (m *member) noted() (v version) {
	text, err := os.ReadFile(filepath.Join(m.Dir, "state", "fleet", "lists", "list.shared.json"))
	var record struct{ Version version }
	if err == nil && json.Unmarshal(text, &record) == nil {
		v = record.Version
	}
	return v
}

// entries returns the entries in the list's file. A damaged file is an error.
func (m *member) entries() (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(m.Dir, "state", "managed", "shared.txt"))
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		switch match := entryLine.FindStringSubmatch(line); {
		case match != nil && all[match[1]]:
			return nil, fmt.Errorf("%s: the entry %s is there twice", m.name, match[1])
		case match != nil:
			all[match[1]] = true
		case !strings.HasPrefix(line, "#") || !strings.HasSuffix(line, "\n"):
			return nil, fmt.Errorf("%s: the line %q is damaged", m.name, line)
		}
	}
	return all, nil
}

var entryLine = regexp.MustCompile(`^([a-z0-9-]+\.example)  # (?:proof|a test)\n$`)

// mustEntries is entries in the test's own goroutine.
func (m *member) mustEntries() map[string]bool {
	m.T.Helper()
	all, err := m.entries()
	if err != nil {
		m.T.Fatal(err)
	}
	return all
}

// alike reports whether gates have noted the same version, and have it in their files.
func alike(members ...*member) (v version, ok bool) {
	v = members[0].noted()
	for _, m := range members {
		text, err := os.ReadFile(filepath.Join(m.Dir, "state", "managed", "shared.txt"))
		if err != nil || m.noted() != v || v.Sequence == 0 || fmt.Sprintf("%x", sha256.Sum256(text)) != v.SHA256 {
			return v, false
		}
	}
	return v, true
}

// waitAlike waits for alike.
func waitAlike(t testing.TB, members ...*member) (v version) {
	t.Helper()
	harness.WaitFor(t, "all gates have the same version", func() (ok bool) {
		v, ok = alike(members...)
		return ok
	})
	return v
}

// settle waits until all gates have the fleet's version, and serve it.
func (c *cluster) settle(members ...*member) version {
	c.Helper()
	var v version
	harness.WaitFor(c, "all gates have the fleet's version", func() bool {
		var ok bool
		if v, ok = alike(members...); !ok {
			return false
		}
		current, ok := c.current()
		return ok && current == v
	})
	for _, m := range members {
		harness.WaitVerdict(c, m.Addr, "a@"+listed, "550 5.7.1")
		harness.WaitFor(c, m.name+" is well", func() bool {
			f := m.status()
			late := slices.ContainsFunc(f.Lists, func(l fleet.ListStatus) bool { return l.Behind || l.Error != "" })
			return f.State == admin.FleetConnected && len(f.Lists) > 0 && !late
		})
	}
	return v
}

// end kills a gate.
func (m *member) end() {
	m.Kill()
	<-m.Exited
	m.Ended = true
}

// watch looks at the files of gates all the time: a sequence never falls, and a list to which
// entries are only added never gets shorter.
func watch(t testing.TB, members ...*member) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	for _, m := range members {
		running.Go(func() {
			tick := time.NewTicker(25 * time.Millisecond)
			defer tick.Stop()
			var sequence uint64
			most := 0
			for {
				all, err := m.entries()
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
					return
				}
				if len(all) < most {
					t.Errorf("%s: the list went back from %d to %d entries", m.name, most, len(all))
				}
				current := m.noted().Sequence
				if current < sequence {
					t.Errorf("%s: the sequence went back from %d to %d", m.name, sequence, current)
				}
				most, sequence = max(most, len(all)), max(sequence, current)
				select {
				case <-tick.C:
				case <-done:
					return
				}
			}
		})
	}
	return func() {
		close(done)
		running.Wait()
	}
}

// mail is messages that go through gates all the time: each must be taken, and a listed sender
// refused.
type mail struct {
	done    chan struct{}
	end     func()
	running sync.WaitGroup
	mu      sync.Mutex
	sent    int
	slowest time.Duration
}

// sendMail sends about ten messages a second through each gate, until stop.
func sendMail(t testing.TB, members ...*member) *mail {
	m := &mail{done: make(chan struct{})}
	m.end = sync.OnceFunc(func() {
		close(m.done)
		m.running.Wait()
	})
	t.Cleanup(m.end) // before the gates end
	for _, g := range members {
		g.Log.KeepOnly(func(line string) bool {
			return !strings.Contains(line, `"msg":"edit asked for"`) && !strings.Contains(line, `"identity":`) && !strings.Contains(line, `"msg":"accepted"`)
		})
		m.running.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-m.done:
					return
				case <-tick.C:
				}
				began := time.Now()
				if err := sendOne(g.Addr); err != nil {
					t.Errorf("%s: mail: %v", g.name, err)
					return
				}
				m.mu.Lock()
				m.sent, m.slowest = m.sent+1, max(m.slowest, time.Since(began))
				m.mu.Unlock()
			}
		})
	}
	return m
}

// sendOne sends a message, and has a listed sender refused.
func sendOne(addr string) error {
	c, err := harness.Dial(addr, "")
	if err != nil {
		return err
	}
	defer c.Close()
	const from = "someone@clean.example"
	if reply, err := c.Send(from, "b@example.net", []byte(harness.SmallMessage(from, "proof"))); err != nil || reply[0] != '2' {
		return fmt.Errorf("%q, %w", reply, err)
	}
	if reply, err := c.Verdict("a@"+listed, "b@example.net"); err != nil || reply[0] != '5' {
		return fmt.Errorf("a listed sender: %q, %w", reply, err)
	}
	return nil
}

// stop ends the mail, and returns what was done in words.
func (m *mail) stop() string {
	m.end()
	return fmt.Sprintf("%d messages, the slowest took %v", m.sent, m.slowest.Round(time.Millisecond))
}

// quantiles returns the middle, the 99th percentile and the largest of times, in words.
func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	locate := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(time.Millisecond / 10) }
	return fmt.Sprintf("p50 %v, p99 %v, max %v (of %d)", locate(0.5), locate(0.99), locate(1), len(all))
}
