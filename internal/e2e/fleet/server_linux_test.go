package fleet

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// initFleet returns the setups of machines for which "spamgate fleet init" has written the files:
// gates with a server in each, which speaks TLS. Each machine has its own address on loopback.
func initFleet(t *testing.T, names ...string) (setups []harness.Setup) {
	t.Helper()
	g := &harness.Gate{T: t, Dir: t.TempDir()}
	args := []string{"fleet", "init"}
	var ports []string
	for i, name := range names {
		var host string
		for _, port := range []string{":4222", ":6222"} {
			addr := serverAddr(t, i)
			free := ""
			host, free, _ = strings.Cut(addr, ":")
			ports = append(ports, host+port, host+":"+free)
		}
		args = append(args, name+"="+host)
	}
	g.Command(t, 0, args...)
	replaced := strings.NewReplacer(ports...)
	for _, name := range names {
		s := harness.Setup{Lists: "[[list]]\nname = \"shared\"\nmanaged = true\nfleet = true\n", Files: map[string]string{}}
		for _, file := range []string{"token", "ca.pem", "server.pem", "server.key"} {
			s.Files["fleet/"+file] = read(t, filepath.Join(g.Dir, "fleet", name, file))
		}
		s.Tables = replaced.Replace(read(t, filepath.Join(g.Dir, "fleet", name, "fleet.toml")))
		setups = append(setups, s)
	}
	return setups
}

// serverAddr returns a free address of the i-th of four machines.
func serverAddr(t *testing.T, i int) string {
	t.Helper()
	host, port, err := net.SplitHostPort(harness.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	ip := net.ParseIP(host).To4()
	ip[1] += byte(64 * i)
	return net.JoinHostPort(ip.String(), port)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dirOf is [harness.Setup.Dir] with secrets that only the owner can read.
func dirOf(t *testing.T, s harness.Setup) string {
	t.Helper()
	dir := s.Dir(t)
	for file := range s.Files {
		if err := os.Chmod(filepath.Join(dir, file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startServers starts gates whose files init has written, and waits until they share the list.
func startServers(t *testing.T, setups []harness.Setup) (gates []*member) {
	t.Helper()
	for i, s := range setups {
		gates = append(gates, &member{harness.Launch(t, dirOf(t, s), exec.Command(harness.Binary(t), "serve")), fmt.Sprint("mx", i+1)})
	}
	for _, g := range gates {
		g.Addr = g.WaitListening()
	}
	waitEqual(t, gates...)
	return gates
}

// waitWell waits until a gate sees so many members, and no problem.
func waitWell(t *testing.T, m *member, members int) (f admin.Fleet) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the status is %+v, server %+v", f, f.OwnServer)
		}
	}()
	harness.WaitFor(t, "all is well", func() bool {
		f = m.status()
		return f.State == admin.FleetConnected && len(f.Members) == members && len(f.Problems) == 0
	})
	return f
}

// stop kills a gate.
func (m *member) stop() {
	m.Kill()
	<-m.Exited
	m.Ended = true
}

// add tries to add an entry, and reports whether the fleet has taken it.
func (m *member) add(entry string) bool {
	m.T.Helper()
	cmd := exec.Command(harness.Binary(m.T), "lists", "add", entry, "--reason", "a test")
	cmd.Dir = m.Dir
	_, _, code := harness.Run(m.T, cmd)
	return code == 0
}

// waitAdded waits until the fleet takes an entry: its servers may have to find a leader first.
func (m *member) waitAdded(t *testing.T, entry string) {
	t.Helper()
	harness.WaitFor(t, "the fleet takes an edit", func() bool { return m.add(entry) })
}

// TestServersInGates has three gates with a server each, which speak TLS: edits go on while one
// of them is down, and the server of a gate that has left the fleet still votes.
func TestServersInGates(t *testing.T) {
	t.Parallel()
	gates := startServers(t, initFleet(t, "mx1", "mx2", "mx3"))
	gates[0].waitAdded(t, "first.example")
	for _, g := range gates {
		g.refuses(t, "a@first.example")
	}
	f := waitWell(t, gates[0], 3)
	if s := f.OwnServer; s == nil || s.Connected != 3 || s.Servers != 3 || len(s.Peers) != 2 || !strings.HasPrefix(f.Server, "tls://") {
		t.Errorf("status %+v, server %+v", f, s)
	}
	if said := gates[1].Command(t, 0, "fleet", "status"); strings.Count(said, "3 of 3") != 3 || strings.Count(said, " leader ") != 1 {
		t.Error(said)
	}
	metrics := harness.ReadMetrics(t, gates[0].SocketClient(), "http://spamgate/metrics")
	for name, want := range map[string]float64{"up": 1, "servers": 3, "servers_connected": 3} {
		if got := harness.MetricValue(t, metrics, "spamgate_fleet_server_"+name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}

	gates[2].stop()
	gates[1].waitAdded(t, "second.example")
	gates[0].refuses(t, "a@second.example")
	harness.WaitFor(t, "the others say who is missing", func() bool {
		return strings.Contains(fmt.Sprint(gates[0].status().Problems), "servers connected: 2 of 3, without mx3")
	})
	gates[2].start()
	gates[2].refuses(t, "a@second.example")
	waitEqual(t, gates...)

	gates[2].Command(t, 0, "fleet", "leave")
	harness.WaitFor(t, "the server of the gate that has left", func() bool {
		s := gates[2].status()
		return s.State == admin.FleetLeft && s.OwnServer.Connected == 3 && s.OwnServer.Leader != ""
	})
	gates[1].stop()
	gates[0].waitAdded(t, "third.example")
	gates[1].start()
	gates[2].Command(t, 0, "fleet", "join")
	waitEqual(t, gates...)
}

// TestThirdVote has two gates, and a server alone as the third vote.
func TestThirdVote(t *testing.T) {
	t.Parallel()
	setups := initFleet(t, "mx1", "mx2", "vote")
	alone := dirOf(t, setups[2])
	harness.WriteFile(t, filepath.Join(alone, "config.toml"), setups[2].Tables)
	cmd := exec.Command(harness.Binary(t), "fleet", "server")
	cmd.Dir = alone
	out := harness.NewOutput(t, "fleet server")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	gates := startServers(t, setups[:2])
	waitWell(t, gates[0], 2)
	if said := gates[0].Command(t, 0, "fleet", "status"); !strings.Contains(said, "\nvote ") {
		t.Error(said)
	}
	gates[1].stop()
	gates[0].waitAdded(t, "first.example")
	gates[1].start()
	gates[1].refuses(t, "a@first.example")
}

// TestTwoServers has two gates alone, which are told what they lack.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	const lacks, do = "two servers: while one is down, edits are refused", "spamgate fleet server"
	gates := startServers(t, initFleet(t, "mx1", "mx2"))
	gates[0].waitAdded(t, "first.example")
	waitWell(t, gates[0], 2)
	for _, args := range [][]string{{"fleet", "status"}, {"health"}, {"config", "check"}, {"fleet", "init", "--dir", "new", "a=192.0.2.1", "b=192.0.2.2"}} {
		said := strings.Join(strings.Fields(gates[0].Command(t, 0, args...)), " ")
		if !strings.Contains(said, lacks) || !strings.Contains(said, do) {
			t.Errorf("%s:\n%s", args, said)
		}
	}
	gates[1].stop()
	harness.WaitFor(t, "there is no leader", func() bool {
		return strings.Contains(fmt.Sprint(gates[0].status().Problems), "servers connected: 1 of 2; they have no leader")
	})
	gates[0].refuses(t, "a@first.example") // mail goes on
}

// TestServerTrouble has servers that cannot run: the gate serves, uses the other servers, and
// names what is wrong.
func TestServerTrouble(t *testing.T) {
	t.Parallel()
	setups := initFleet(t, "mx1", "mx2", "mx3")
	gates := startServers(t, setups)
	gates[2].waitAdded(t, "first.example")
	bad := gates[2]
	listen := bad.status().OwnServer.Listen
	named := func(what string) {
		t.Helper()
		bad.refuses(t, "a@first.example")
		var f admin.Fleet
		harness.WaitFor(t, "the gate uses other servers, and names: "+what, func() bool {
			f = bad.status()
			return f.State == admin.FleetConnected && strings.Contains(fmt.Sprint(f.Problems), what)
		})
		if !strings.Contains(bad.Command(t, 0, "health"), "the server in this gate: ") {
			t.Error("health says nothing")
		}
	}

	// Another program has the port.
	bad.stop()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	bad.start()
	named("give the server another port")
	harness.WaitFor(t, "the others name it", func() bool {
		return strings.Contains(fmt.Sprint(gates[0].status().Problems), "mx3: the server in this gate: it does not run")
	})
	l.Close()
	harness.WaitFor(t, "the server runs", func() bool { return bad.status().OwnServer.Running })

	// Another process has the store.
	bad.stop()
	holder, err := os.Open(filepath.Join(bad.Dir, "state", "fleet", "server"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if err := syscall.Flock(int(holder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	bad.start()
	named("another process uses this store")
	holder.Close()

	// It has other credentials: no route connects.
	bad.stop()
	if err := os.WriteFile(filepath.Join(bad.Dir, "fleet", "token"), []byte("another-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad.start()
	bad.refuses(t, "a@first.example")
	harness.WaitFor(t, "it says that its credentials are others", func() bool {
		said := fmt.Sprint(bad.status().Problems)
		return strings.Contains(said, "servers connected: 1 of 3") && strings.Contains(said, "another server has other credentials")
	})
	gates[0].waitAdded(t, "second.example")
}

// TestServerDamaged starts a gate whose server's store has been damaged: the gate uses the other
// servers and names it. Without the store the server gets everything from the others.
func TestServerDamaged(t *testing.T) {
	t.Parallel()
	gates := startServers(t, initFleet(t, "mx1", "mx2", "mx3"))
	gates[0].waitAdded(t, "first.example")
	g := gates[0]
	store := filepath.Join(g.Dir, "state", "fleet", "server")
	g.stop()
	n := 0
	err := filepath.WalkDir(store, func(file string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		n++
		return os.WriteFile(file, []byte("damaged"), 0o600)
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	g.start()
	g.refuses(t, "a@first.example")
	harness.WaitFor(t, "the status says it", func() bool {
		f := g.status()
		return f.State == admin.FleetConnected && strings.Contains(fmt.Sprint(f.Problems), "the store is damaged: stop this server, remove the directory")
	})
	g.waitAdded(t, "second.example")
	g.stop()
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	g.start()
	harness.WaitFor(t, "the server works again", func() bool {
		s := g.status().OwnServer
		return s != nil && s.Connected == 3 && s.Leader != ""
	})
	g.waitAdded(t, "third.example")
	waitEqual(t, gates...)
}

// TestServerDiskFull has the disk of a server full: its gate goes on with the other servers, and
// the server works again when there is room.
func TestServerDiskFull(t *testing.T) {
	harness.PrivateMounts(t)
	setups := initFleet(t, "mx1", "mx2", "mx3")
	dirs := []string{dirOf(t, setups[0]), dirOf(t, setups[1]), dirOf(t, setups[2])}
	store := filepath.Join(dirs[2], "state", "fleet", "server")
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", store, "tmpfs", 0, "mode=0700,size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(store, unix.MNT_DETACH) })
	var gates []*member
	for i, dir := range dirs {
		gates = append(gates, &member{harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve")), fmt.Sprint("mx", i+1)})
	}
	for _, g := range gates {
		g.Addr = g.WaitListening()
	}
	waitEqual(t, gates...)
	full := filepath.Join(store, "full")
	if out, err := exec.Command(harness.Program(t, "dd", "coreutils"), "if=/dev/zero", "of="+full, "bs=64k").CombinedOutput(); err == nil {
		t.Fatalf("the disk is not full: %s", out)
	}
	n := 0
	harness.WaitFor(t, "the status names the disk", func() bool {
		n++
		gates[0].add(fmt.Sprintf("entry%d.example", n))
		return strings.Contains(fmt.Sprint(gates[2].status().Problems), "no space left")
	})
	gates[1].waitAdded(t, "last.example")
	gates[2].refuses(t, "a@last.example")
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the server works again", func() bool {
		s := gates[2].status().OwnServer
		return s != nil && s.Connected == 3 && s.Leader != "" && s.Running
	})
	waitEqual(t, gates...)
}

// succession returns a gate with a server in it that can hand over.
func succession(t *testing.T, s harness.Setup, name, program string) (*member, *harness.Succession) {
	t.Helper()
	g := harness.LaunchSuccession(t, dirOf(t, s), nil, nil, program, "serve")
	return &member{g.Gate, name}, g
}

// edits makes edits on gates until it is stopped.
type edits struct {
	wg   sync.WaitGroup
	done chan struct{}

	mu      sync.Mutex
	taken   []string // by the fleet
	refused int
}

func startEdits(gates ...*member) *edits {
	e := &edits{done: make(chan struct{})}
	for _, g := range gates {
		e.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-e.done:
					return
				default:
				}
				entry := fmt.Sprintf("%s-%d.example", g.name, i)
				ok := g.add(entry)
				e.mu.Lock()
				if ok {
					e.taken = append(e.taken, entry)
				} else {
					e.refused++
				}
				e.mu.Unlock()
			}
		})
	}
	return e
}

// stop ends the edits, and checks that each gate has all that were taken.
func (e *edits) stop(t *testing.T, gates ...*member) {
	t.Helper()
	close(e.done)
	e.wg.Wait()
	waitEqual(t, gates...)
	file := "\n" + gates[0].file()
	for _, entry := range e.taken {
		if !strings.Contains(file, "\n"+entry+" ") {
			t.Errorf("the edit of %s is lost", entry)
		}
	}
	if len(e.taken) == 0 {
		t.Error("no edit was taken")
	}
	t.Logf("%d edits taken, %d refused", len(e.taken), e.refused)
}

// wantOneServer checks that no two processes of a gate have had the server at a time: it starts
// and ends by turns.
func wantOneServer(t *testing.T, g *harness.Succession, starts int) {
	t.Helper()
	runs, began := false, 0
	for line := range strings.Lines(g.Log.String()) {
		switch r := harness.ParseRecord(line); {
		case r.Matches("server of the fleet runs", nil):
			if began++; runs {
				t.Error("two servers on one store:", line)
			}
			runs = true
		case r.Matches("server of the fleet has stopped", nil):
			runs = false
		}
	}
	if runs || began != starts {
		t.Errorf("%d servers, want %d; one runs: %t", began, starts, runs)
	}
}

// wantMembers checks that a gate shows each member once.
func wantMembers(t *testing.T, m *member, want int) {
	t.Helper()
	names := map[string]int{}
	for _, p := range m.status().Members {
		if names[p.Name]++; names[p.Name] > 1 {
			t.Errorf("%s is shown twice", p.Name)
		}
	}
	if len(names) > want {
		t.Errorf("members %v, want %d", names, want)
	}
}

// TestServerHandover hands over a gate with a server in it again and again, while mail runs
// through it and edits are made on the others: neither gets lost, and there is one member and one
// server all the time.
func TestServerHandover(t *testing.T) {
	t.Parallel()
	handovers := harness.IfFull(2, 20)
	setups := initFleet(t, "mx1", "mx2", "mx3")
	sink := smtptest.NewSink(t)
	setups[0].NextHop = "smtp://" + sink.Addr()
	first, g := succession(t, setups[0], "mx1", harness.Binary(t))
	var others []*member
	for i, s := range setups[1:] {
		others = append(others, &member{harness.Launch(t, dirOf(t, s), exec.Command(harness.Binary(t), "serve")), fmt.Sprint("mx", i+2)})
	}
	gates := append([]*member{first}, others...)
	for _, m := range gates {
		m.Addr = m.WaitListening()
	}
	waitEqual(t, gates...)
	e := startEdits(others...)
	l := harness.StartLoad(t, g.Addr, false)
	var took time.Duration
	for i := range handovers {
		l.During(100, func() {
			began := time.Now()
			g.HandOver()
			g.WaitNth(i+2, "server of the fleet runs")
			took = max(took, time.Since(began))
			wantMembers(t, others[i%2], 3)
		})
	}
	sent := l.Stop()
	e.stop(t, gates...)
	first.waitAdded(t, "last.example")
	waitWell(t, others[0], 3)
	wantMembers(t, others[0], 3)
	g.Stop()
	g.WantEnded(handovers + 1)
	harness.WantOnce(t, sink, sent)
	wantOneServer(t, g, handovers+1)
	t.Logf("%d handovers, at most %v from the request until the server ran again; %d messages", handovers, took.Round(time.Millisecond), len(sent))
}
