package fleet

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

// TestChaos has three gates with a server beside each, and a fourth that only reads, on which all goes
// wrong at once: they are killed, parted and lose their state directories while all three edit the
// list and add accounts, and somebody with the credentials of a reader tries to change something. No
// acknowledged edit or account is lost, nothing else appears, and no gate lets a listed sender in.
// SPAMGATE_CHAOS_MINUTES is how long that goes on.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed := fleetSeed(t)
	c := startChaos(t, seed)
	c.attack()
	for _, g := range c.gates {
		c.listening(g)
		c.ask(g)
	}
	began, least := time.Now(), time.Duration(count(t, "SPAMGATE_CHAOS_MINUTES", 0, 30))*time.Minute
	c.run(seed, c.one, func(n int) bool { return n >= 3 && time.Since(began) > least })
	c.end()
	c.checkAccounts()
	c.reader.refuses(t, "a@"+listed)
	t.Logf("%d verdicts on a listed sender; %d tries of a reader", c.asked, c.tries)
}

// chaos is a fleet on three machines whose network a test breaks.
type chaos struct {
	*kills
	addresses [][2]string        // of the servers, for clients and for each other
	ways      map[[2]int][]*link // from a machine to the servers of another one
	reader    *member
	accounts  []*script

	done         chan struct{}
	running      sync.WaitGroup
	mu           sync.Mutex
	addrs        map[*member]string // where the gates listen
	asked, tries int
}

// startChaos starts the gates, with a first entry and a first account.
func startChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{ways: map[[2]int][]*link{}, done: make(chan struct{}), addrs: map[*member]string{}}
	setups := initFleet(t, "mx1", "mx2", "mx3")
	for _, s := range setups {
		c.addresses = append(c.addresses, serverAddresses(s.Tables))
	}
	for i := range setups {
		for j, others := range c.addresses {
			for _, address := range others {
				if i != j {
					l := newLink(t, address)
					c.ways[[2]int{i, j}] = append(c.ways[[2]int{i, j}], l)
					setups[i].Tables = strings.ReplaceAll(setups[i].Tables, address, l.addr)
				}
			}
		}
		setups[i].Tables += harness.ConsoleTable(harness.FreeAddr(t))
	}
	gates := startServers(t, setups)
	gates[0].waitAdded(t, "first.example")
	harness.WaitFor(t, "the fleet takes an edit", func() bool { return gates[0].edit("add", listed) == nil })
	gates[0].Command(t, 0, "console", "user", "add", "ann", "--no-password", "--role", "admin")
	c.kills = &kills{T: t, r: rand.New(rand.NewPCG(seed, 0)), gates: gates, done: map[string]int{}}
	c.kills.c = clusterOf(t, gates)
	harness.WaitFor(t, "the buckets are on three servers", c.c.whole)

	gates[0].Command(t, 0, "fleet", "member", "dmz1", "--read-only")
	s := harness.Setup{Lists: setups[0].Lists, Files: map[string]string{}}
	for _, file := range []string{"token", "ca.pem"} {
		s.Files["fleet/"+file] = read(t, filepath.Join(gates[0].Dir, "dmz1", file))
	}
	s.Tables = read(t, filepath.Join(gates[0].Dir, "dmz1", "fleet.toml"))
	c.reader = start(t, dirOf(t, s), "dmz1")
	return c
}

// clusterOf returns the cluster of the servers in gates, seen from the first one.
func clusterOf(t *testing.T, gates []*member) *cluster {
	t.Helper()
	g := gates[0]
	address := serverAddresses(read(t, filepath.Join(g.Dir, "config.toml")))[0]
	return &cluster{TB: t, brokers: make([]broker, len(gates)), client: connect(t, g, address, read(t, filepath.Join(g.Dir, "fleet", "token")))}
}

// serverAddresses returns where the server of a configuration listens, for clients and for servers.
func serverAddresses(config string) (all [2]string) {
	for i, key := range []string{"listen", "cluster"} {
		// A server that is alone has no cluster.
		if m := regexp.MustCompile(`(?m)^` + key + ` = "(.*)"$`).FindStringSubmatch(config[strings.Index(config, "[fleet.server]"):]); m != nil {
			all[i] = m[1]
		}
	}
	return all
}

// connect connects to the server on a machine with a token.
func connect(t *testing.T, g *member, address, token string, more ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("tls://"+address, append(more, nats.Token(strings.TrimSpace(token)), nats.RootCAs(filepath.Join(g.Dir, "fleet", "ca.pem")),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// run edits accounts beside the list.
func (c *chaos) run(seed uint64, step func(), enough func(n int) bool) {
	c.Helper()
	for i, g := range c.gates {
		dir := g.Dir
		s := &script{name: g.name, r: rand.New(rand.NewPCG(seed+uint64(i), 2)), has: map[string]bool{}, edit: func(what, name string) error {
			args := []string{"console", "user", what, name}
			if what == "add" {
				args = append(args, "--no-password")
			}
			cmd := exec.Command(harness.Binary(c), args...)
			cmd.Dir = dir
			return cmd.Run()
		}}
		c.accounts = append(c.accounts, s)
		c.each(2*time.Second, func() { _, _, _ = s.one() }) // it may be refused
	}
	c.kills.run(seed, step, enough)
}

// each does something again and again until the end, so long after the last time.
func (c *chaos) each(pause time.Duration, do func()) {
	c.running.Go(func() {
		for {
			do()
			select {
			case <-c.done:
				return
			case <-time.After(pause):
			}
		}
	})
}

// end ends what goes on beside the edits of the list.
func (c *chaos) end() {
	close(c.done)
	c.running.Wait()
}

// ask asks a gate for the verdict on a listed sender while it runs.
func (c *chaos) ask(g *member) {
	asker := &harness.Asker{}
	c.each(20*time.Millisecond, func() {
		c.mu.Lock()
		addr := c.addrs[g]
		c.mu.Unlock()
		if asker.Addr != addr { // it has started again
			asker = &harness.Asker{Addr: addr}
		}
		reply, err := asker.Verdict("a@"+listed, "b@example.net")
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err != nil: // it does not run
			asker = &harness.Asker{}
		case reply[0] == '2':
			c.Errorf("%s: %q for a listed sender", addr, reply)
		default:
			c.asked++
		}
	})
}

// listening notes where a gate that has started listens.
func (c *chaos) listening(g *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addrs[g] = g.Addr
}

// attack has a reader ask what it may, and may not, and have the answers go where they would change
// something.
func (c *chaos) attack() {
	c.Helper()
	g := c.gates[0]
	g.Command(c, 0, "fleet", "member", "dmz2", "--read-only")
	nc := connect(c.T, g, c.addresses[0][0], read(c.T, filepath.Join(g.Dir, "dmz2", "token")),
		nats.Name(fleet.ClientName("dmz2")), nats.CustomInboxPrefix(fleet.Inbox("dmz2")), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	subjects := []string{
		"spamgate.read.dmz2", "spamgate.read.dmz1", "spamgate.ask.changed", "spamgate.missing", "$JS.API.STREAM.PURGE.KV_spamgate-lists", "$JS.API.STREAM.DELETE.KV_spamgate-state",
		"$JS.API.DIRECT.GET.KV_spamgate-lists.$KV.spamgate-lists.list.shared", "$KV.spamgate-lists.list.shared", "$KV.spamgate-state.pin.shared", "$KV.spamgate-members.mx1.x", "$O.spamgate-content.M.x",
	}
	replies := append([]string{"_INBOX.mx1.x", "_INBOX.dmz1.x", "_INBOX.dmz2.x"}, subjects...)
	questions := []string{
		`{"do":"list","key":"list.shared"}`, `{"do":"list","key":"list.` + fleet.AccountsList + `"}`, `{"do":"state"}`, `{"do":"gone","sign":{"name":"mx1","instance":"x"}}`,
		`{"do":"alive","sign":{"name":"mx1","instance":"x"}}`, `{"value":{"version":"x"}}`, "", strings.Repeat("x", 100_000),
	}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	c.each(5*time.Millisecond, func() {
		_ = nc.PublishRequest(pick(subjects), pick(replies), []byte(pick(questions))) // it may be cut off
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tries++
	})
}

// one breaks something, mends it, and waits until edits are made.
func (c *chaos) one() {
	c.Helper()
	i := c.r.IntN(len(c.gates))
	victims := []*member{c.gates[i]}
	what := "a gate with its server"
	var parted linkState
	switch n := c.r.IntN(100); {
	case n < 10:
	case n < 20:
		what = "a gate"
	case n < 30:
		what = "a server"
	case n < 40:
		what, victims = "two gates with their servers", append(victims, c.gates[(i+1)%3])
	case n < 50:
		what, victims = "all gates and servers", c.gates
	case n < 60:
		what = "a gate with its server and the state directory"
		harness.WaitFor(c, "all servers have all", c.c.whole) // only this one's disk is lost
	case n < 75:
		what, victims, parted = "the network of a machine", nil, linkCut
	case n < 90:
		what, victims, parted = "the packets of a machine", nil, linkStalled
	default: // the other two have no majority
		what, victims, parted = "a machine's network, and another gate with its server", []*member{c.gates[(i+1)%3]}, linkCut
	}
	c.kills.done[what]++
	c.pause()
	if parted != linkOpen {
		c.part(i, parted)
	}
	for _, g := range victims {
		switch what {
		case "a gate":
			kill(g.Gate)
		case "a server":
			kill(g.Server)
		default:
			g.stop()
		}
	}
	if strings.HasSuffix(what, "the state directory") {
		if err := os.RemoveAll(filepath.Join(victims[0].Dir, "state")); err != nil {
			c.Fatal(err)
		}
	}
	c.pause()
	for range map[bool]int{true: 5}[parted != linkOpen] {
		c.pause() // what is parted notices it
	}
	c.part(i, linkOpen)
	for _, g := range victims {
		switch server := g.Server; what {
		case "a gate":
			g.Gate = harness.Serve(c, g.Dir)
			g.Server = server
		case "a server":
			g.Server = harness.LaunchFleetd(c, g.Dir)
		default:
			g.start()
		}
		c.listening(g)
	}
	c.goesOn(what)
}

// part breaks all ways to a machine and from it, or mends them.
func (c *chaos) part(i int, state linkState) {
	for way, links := range c.ways {
		for _, l := range links {
			if slices.Contains(way[:], i) {
				l.set(state)
			}
		}
	}
}

// checkAccounts checks the accounts on all gates, and that nobody else shows himself.
func (c *chaos) checkAccounts() {
	c.Helper()
	for _, g := range c.gates {
		harness.WaitFor(c, g.name+" has the fleet's accounts", func() bool {
			a := accountsOf(g.status())
			return a.Sequence > 0 && !a.Behind && a.Error == "" && a.Sequence == accountsOf(c.gates[0].status()).Sequence
		})
		last := c.users(g)
		tried := 0
		for _, s := range c.accounts {
			s.checkIn(c.T, g, last)
			tried += s.n
		}
		if len(last) > tried+1 || !last["ann"] {
			c.Errorf("%s has %d accounts, and %d were tried", g.name, len(last), tried)
		}
	}
	made, refused := 0, 0
	for _, s := range c.accounts {
		m, r := s.acknowledged()
		made, refused = made+m, refused+r
	}
	c.Logf("%d changes of accounts acknowledged, %d not", made, refused)
	harness.WaitFor(c, "the members are the gates and the reader", func() bool {
		var names []string
		for _, p := range c.gates[0].status().Members {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ") == "dmz1 mx1 mx2 mx3"
	})
}

// users returns the accounts of a gate.
func (c *chaos) users(g *member) map[string]bool {
	c.Helper()
	var list []struct{ Name string }
	text := g.Command(c, 0, "console", "user", "list", "--json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		c.Fatalf("%v\n%s", err, text)
	}
	all := map[string]bool{}
	for _, u := range list {
		all[u.Name] = true
	}
	return all
}
