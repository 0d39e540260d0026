package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/managed"
)

// TestProofLatency adds entries on five gates in turn, under mail, and measures how long it takes
// after the edit has returned until all five refuse the sender.
func TestProofLatency(t *testing.T) {
	t.Parallel()
	c := startBrokers(t, harness.IfFull(1, 3))
	gates := startFleet(t, same(5, c.urls())...)
	load := sendMail(t, gates...)
	var edits, all []time.Duration
	for i := range count(t, "SPAMGATE_FLEET_EDITS", 5, 500) {
		g := gates[i%len(gates)]
		entry := fmt.Sprintf("e%d.example", i)
		began := time.Now()
		if err := g.edit("add", entry); err != nil {
			t.Fatal(err)
		}
		returned := time.Now()
		edits = append(edits, returned.Sub(began))
		all = append(all, refusedBy(t, returned, "a@"+entry, gates))
	}
	t.Logf("an edit takes %s", quantiles(edits))
	t.Logf("until all five gates refuse after it returned: %s", quantiles(all))
	t.Logf("meanwhile %s", load.stop())
	c.settle(gates...)
}

// refusedBy waits until all gates refuse a sender, and returns how long after began that was.
func refusedBy(t *testing.T, began time.Time, from string, gates []*member) (last time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, g := range gates {
		asking.Go(func() {
			a := &harness.Asker{Addr: g.Addr}
			defer a.Close()
			for time.Since(began) < harness.WorkTimeout {
				asked := time.Now()
				reply, err := a.Verdict(from, "b@example.net")
				if err != nil {
					t.Errorf("%s: %v", g.name, err)
					return
				}
				if reply[0] == '5' {
					mu.Lock()
					defer mu.Unlock()
					last = max(last, asked.Sub(began))
					return
				}
				time.Sleep(2 * time.Millisecond) // many questions would slow down what is measured
			}
			t.Errorf("%s: %s is not refused", g.name, from)
		})
	}
	asking.Wait()
	return last
}

// TestProofEditsAtOnce lets three gates add and remove entries at once: no edit is lost, each is
// one version and one record in its gate's audit log, and all are equal at the end.
func TestProofEditsAtOnce(t *testing.T) {
	t.Parallel()
	c := startBrokers(t, harness.IfFull(1, 3))
	gates := startFleet(t, same(3, c.urls())...)
	first := waitAlike(t, gates...)
	n := count(t, "SPAMGATE_FLEET_EDITS", 10, 1000)
	began := time.Now()
	var editing sync.WaitGroup
	scripts := make([]*script, len(gates))
	for i, g := range gates {
		scripts[i] = newScript(g, uint64(i))
		editing.Go(func() {
			for range n {
				if what, entry, err := scripts[i].one(); err != nil {
					t.Errorf("%s: %s %s: %v", g.name, what, entry, err)
					return
				}
			}
		})
	}
	editing.Wait()
	took := time.Since(began)
	last := c.settle(gates...)
	t.Logf("three gates made %d edits each at once in %v, %.1f a second; all were equal %v later",
		n, took.Round(time.Millisecond), float64(3*n)/took.Seconds(), (time.Since(began) - took).Round(time.Millisecond))
	if made := last.Sequence - first.Sequence; made != uint64(3*n) && !t.Failed() {
		t.Errorf("%d edits made %d versions", 3*n, made)
	}
	for i, g := range gates {
		for _, s := range scripts {
			s.check(t, g)
		}
		if made := ownChanges(t, g); made != n+map[bool]int{true: 1}[i == 0] { // the entry listed
			t.Errorf("%s has %d changes in its audit log, and made %d edits", g.name, made, n)
		}
	}
}

// ownChanges returns how many changes of entries the audit log of a gate has.
func ownChanges(t *testing.T, g *member) (n int) {
	t.Helper()
	client, err := dial(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for q := (managed.ChangesQuery{List: "shared", Limit: 500}); ; {
		page, err := admin.Call(context.Background(), client, admin.OpChanges, admin.ChangesRequest{ChangesQuery: q})
		if err != nil || page.Incomplete {
			t.Fatal(page.Incomplete, err)
		}
		for _, change := range page.Changes {
			if change.ID != "" && change.Undone == nil {
				n++
			}
		}
		if q.Before = page.Next; q.Before == "" {
			return n
		}
	}
}

// script makes edits on a gate, and knows which entries the list has by them; or which accounts
// there are.
type script struct {
	name string // of the gate
	edit func(what, entry string) error
	r    *rand.Rand

	mu      sync.Mutex
	n       int
	has     map[string]bool // what was acknowledged last about an entry
	added   []string        // those that can be removed
	refused int
}

func newScript(g *member, seed uint64) *script {
	var client *admin.Client
	dir := g.Dir // the member is another gate after a restart
	return &script{name: g.name, r: rand.New(rand.NewPCG(seed, 1)), has: map[string]bool{}, edit: func(what, entry string) (err error) {
		if client == nil {
			client, err = dial(dir)
		}
		if err == nil {
			err = edit(client, what, entry)
		}
		return err
	}}
}

// one makes an edit. After an error nobody knows what the list has, so the script forgets the
// entry.
func (s *script) one() (what, entry string, err error) {
	s.mu.Lock()
	what, entry = "add", fmt.Sprintf("%s-%d.example", s.name, s.n)
	if s.n++; len(s.added) > 0 && s.r.IntN(3) == 0 {
		i := s.r.IntN(len(s.added))
		what, entry = "remove", s.added[i]
		s.added[i] = s.added[len(s.added)-1]
		s.added = s.added[:len(s.added)-1]
	}
	delete(s.has, entry)
	s.mu.Unlock()
	err = s.edit(what, entry)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.refused++
	case what == "add":
		s.has[entry] = true
		s.added = append(s.added, entry)
	default:
		s.has[entry] = false
	}
	return what, entry, err
}

// acknowledged returns how many edits were acknowledged, and how many were not.
func (s *script) acknowledged() (made, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n - s.refused, s.refused
}

// check checks that a gate has what was acknowledged.
func (s *script) check(t *testing.T, g *member) {
	t.Helper()
	s.checkIn(t, g, g.mustEntries())
}

// checkIn is check for all entries, or all accounts, of a gate.
func (s *script) checkIn(t *testing.T, g *member, all map[string]bool) {
	t.Helper()
	for entry, want := range s.has {
		if all[entry] != want {
			t.Errorf("%s has %s: %v, but an edit on %s made it %v", g.name, entry, all[entry], s.name, want)
		}
	}
}
