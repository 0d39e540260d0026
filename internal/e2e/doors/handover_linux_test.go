package doors

import (
	"crypto/sha1"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestHandover hands a gate over again and again while mail servers ask at its doors. Each
// question is answered: those on a connection that is kept at the second try at the latest, as
// Postfix tries, and those over UDP and on new connections at once.
func TestHandover(t *testing.T) {
	t.Parallel()
	handovers := harness.IfFull(harness.IfShort(6, 3), 20)
	dir := harness.Setup{
		Listen: harness.NoListener, Keys: map[string]string{"listen": "shutdown_timeout = \"1s\""},
		Files: map[string]string{"blocked.txt": "spam.example\nbad@hashed.example\n"},
		Tables: `
[[policy_service]]
name = "tcp"
addr = "127.0.0.1:0"
[[policy_service]]
name = "unix"
addr = "unix:policy.sock"
[[milter]]
name = "milter"
addr = "127.0.0.1:0"
[[dns_server]]
name = "dns"
addr = "127.0.0.1:0"
zone = "bl.example.org"
hashed_zone = "hash.example.org"
`}.Dir(t)
	g := harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	g.WaitRecord("loaded")
	resolver := doorAddr(g.Gate, "dns")

	stop := make(chan struct{})
	var askers sync.WaitGroup
	var kept []*policyClient
	var counts []*atomic.Int64
	ask := func(name, want string, question func() (string, error)) {
		n := new(atomic.Int64)
		counts = append(counts, n)
		askers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if text, err := question(); err != nil || text != want {
					t.Errorf("%s, question %d: %q, %v; want %q", name, n.Load()+1, text, err, want)
					return
				}
				n.Add(1)
			}
		})
	}
	for _, door := range []string{"tcp", "unix"} {
		addr := doorAddr(g.Gate, door)
		client := &policyClient{addr: addr}
		kept = append(kept, client)
		ask(door+", kept", "DUNNO", func() (string, error) { return client.ask("a@example.com") })
		ask(door+", new", "DUNNO", func() (string, error) {
			c := &policyClient{addr: addr}
			defer c.close()
			return c.ask("a@example.com")
		})
	}
	milter := doorAddr(g.Gate, "milter")
	ask("milter", "c", func() (string, error) { return askMilter(milter, "a@example.com") })
	for _, network := range []string{"udp", "tcp"} {
		ask(network, "NOERROR 127.0.0.2", func() (string, error) { return askDNS(network, resolver, "spam.example.bl.example.org") })
	}
	hashed := fmt.Sprintf("%x.hash.example.org", sha1.Sum([]byte("bad@hashed.example")))
	harness.WaitFor(t, "the index of hashes", func() bool {
		text, err := askDNS("udp", resolver, hashed)
		return text == "NOERROR 127.0.0.2" && err == nil
	})
	ask("hashes", "NOERROR 127.0.0.2", func() (string, error) { return askDNS("udp", resolver, hashed) })
	wait := func(when string) {
		for i, n := range counts {
			before := n.Load()
			harness.WaitFor(t, fmt.Sprintf("answers of asker %d %s", i, when), func() bool { return n.Load() > before || t.Failed() })
		}
	}
	wait("before")
	for i := range handovers {
		g.HandOver()
		wait(fmt.Sprintf("after handover %d", i+1))
	}
	g.WaitNth(handovers, "ended")
	wait("in the end")
	close(stop)
	askers.Wait()
	retried, asked := 0, int64(0)
	for _, c := range kept {
		retried += c.retried
		c.close()
	}
	for _, n := range counts {
		asked += n.Load()
	}
	g.Stop()
	g.WantEnded(handovers + 1)
	if !harness.HasNoFiles(g.Dir, "policy.sock") {
		t.Errorf("%s is still there", filepath.Join(g.Dir, "policy.sock"))
	}
	t.Logf("%d questions, %d of them asked again", asked, retried)
}

// TestHandoverChanges hands a gate over to one that cannot open its doors, which changes nothing,
// and then to one with other doors: what it does not have is gone.
func TestHandoverChanges(t *testing.T) {
	t.Parallel()
	s := harness.Setup{Listen: harness.NoListener, Tables: "[[policy_service]]\nname = \"old\"\naddr = \"unix:old.sock\"\n"}
	g := harness.LaunchSuccession(t, s.Dir(t), nil, nil, harness.Binary(t), "serve")
	g.WaitRecord("loaded")
	old := &policyClient{addr: doorAddr(g.Gate, "old")}
	defer old.close()
	want := func(c *policyClient) {
		t.Helper()
		c.close() // over a new connection
		if action, err := c.ask("a@example.com"); action != "DUNNO" || err != nil {
			t.Errorf("%s: %q, %v", c.addr, action, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	failing := s
	failing.Tables += "socket_mode = \"0600\"\n[[milter]]\naddr = \"" + taken.Addr().String() + "\"\n"
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), failing.Config())
	g.Signal(syscall.SIGUSR2)
	if text := g.WaitRecord("not handed over, this process goes on").Text("error"); !strings.Contains(text, "milter.addr: ") || !strings.Contains(text, "address already in use") {
		t.Errorf("it said %q", text)
	}
	want(old)
	if info, err := os.Lstat(filepath.Join(g.Dir, "old.sock")); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("the socket is %v, %v", info, err)
	}

	s.Tables = "[[policy_service]]\nname = \"new\"\naddr = \"unix:new.sock\"\n"
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
	g.HandOver()
	want(&policyClient{addr: doorAddr(g.Gate, "new")})
	// The file belongs to the new process once it has told the old one that it serves.
	harness.WaitFor(t, "the socket of the old door is gone", func() bool { return harness.HasNoFiles(g.Dir, "old.sock") })
	g.WaitNth(1, "ended")
	want(&policyClient{addr: doorAddr(g.Gate, "new")})
	g.Stop()
}
