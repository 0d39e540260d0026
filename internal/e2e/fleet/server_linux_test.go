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

	"golang.org/x/sys/unix"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/e2e/harness"
)

// initFleet returns the setups of machines for which "spamgate fleet init" has written the files:
// a gate and a server on each, which speaks TLS. Each machine has its own address on loopback.
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

// startServers starts machines whose files init has written, each with a gate and a server, and waits
// until they share the list.
func startServers(t *testing.T, setups []harness.Setup) []*member {
	t.Helper()
	var dirs []string
	for _, s := range setups {
		dirs = append(dirs, dirOf(t, s))
	}
	return startMachines(t, dirs...)
}

// startMachines is startServers for directories with the files.
func startMachines(t *testing.T, dirs ...string) (gates []*member) {
	t.Helper()
	for i, dir := range dirs {
		server := harness.LaunchFleetd(t, dir)
		g := &member{harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve")), fmt.Sprint("mx", i+1)}
		g.Server = server
		gates = append(gates, g)
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
			t.Logf("the status is %+v", f)
		}
	}()
	harness.WaitFor(t, "all is well", func() bool {
		f = m.status()
		return f.State == admin.FleetConnected && len(f.Members) == members && len(f.Problems) == 0
	})
	return f
}

// stop kills a gate, and the server on its machine.
func (m *member) stop() {
	kill(m.Gate)
	if m.Server != nil {
		kill(m.Server)
	}
}

// kill kills a process.
func kill(g *harness.Gate) {
	if !g.Ended {
		g.Kill()
		<-g.Exited
		g.Ended = true
	}
}

// logs waits until a process has logged a text.
func logs(g *harness.Gate, text string) {
	g.T.Helper()
	g.Log.Wait(text, func(line string) bool { return strings.Contains(line, text) })
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

// TestServers has three machines with a gate and a server each, which speak TLS: edits go on while one
// of them is down, and the server beside a gate that has left the fleet still votes.
func TestServers(t *testing.T) {
	t.Parallel()
	gates := startServers(t, initFleet(t, "mx1", "mx2", "mx3"))
	gates[0].waitAdded(t, "first.example")
	for _, g := range gates {
		g.refuses(t, "a@first.example")
	}
	waitServers(t, gates[0], 3)
	if f := waitWell(t, gates[0], 3); !strings.HasPrefix(f.Server, "tls://") {
		t.Errorf("status %+v", f)
	}
	if text := gates[0].Command(t, 0, "fleet", "status"); !strings.Contains(text, "servers connected: 3 of 3\n") {
		t.Error(text)
	}
	metrics := harness.ReadMetrics(t, gates[0].SocketClient(), "http://spamgate/metrics")
	for _, name := range []string{"servers", "servers_connected"} {
		if got := harness.MetricValue(t, metrics, "spamgate_fleet_"+name); got != 3 {
			t.Errorf("%s is %v, want 3", name, got)
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
	waitServers(t, gates[0], 3)
	gates[1].stop()
	gates[0].waitAdded(t, "third.example")
	gates[1].start()
	gates[2].Command(t, 0, "fleet", "join")
	waitEqual(t, gates...)
}

// waitServers waits until a gate sees so many servers, all of them connected.
func waitServers(t *testing.T, m *member, want int) {
	t.Helper()
	harness.WaitFor(t, fmt.Sprintf("%d servers are connected", want), func() bool {
		s := m.status().Status
		n, missing := s.ConnectedServers()
		return n == want && len(missing) == 0
	})
}

// TestThirdVote has two gates, and a server alone as the third vote.
func TestThirdVote(t *testing.T) {
	t.Parallel()
	setups := initFleet(t, "mx1", "mx2", "vote")
	alone := dirOf(t, setups[2])
	harness.WriteFile(t, filepath.Join(alone, "config.toml"), setups[2].Tables)
	harness.LaunchFleetd(t, alone)
	gates := startServers(t, setups[:2])
	waitWell(t, gates[0], 2)
	waitServers(t, gates[0], 3)
	gates[1].stop()
	gates[0].waitAdded(t, "first.example")
	gates[1].start()
	gates[1].refuses(t, "a@first.example")
}

// TestTwoServers has two machines, which are told what they lack.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	const lacks, do = "two servers: while one is down, edits are refused", "spamgate-fleetd"
	gates := startServers(t, initFleet(t, "mx1", "mx2"))
	gates[0].waitAdded(t, "first.example")
	waitWell(t, gates[0], 2)
	for _, args := range [][]string{{"fleet", "status"}, {"health"}, {"config", "check"}, {"fleet", "init", "--dir", "new", "a=192.0.2.1", "b=192.0.2.2"}} {
		text := strings.Join(strings.Fields(gates[0].Command(t, 0, args...)), " ")
		if !strings.Contains(text, lacks) || !strings.Contains(text, do) {
			t.Errorf("%s:\n%s", args, text)
		}
	}
	lost, left := gates[1], gates[0]
	if left.holdsLists(t) {
		lost, left = left, lost
	}
	if !lost.holdsLists(t) || left.holdsLists(t) {
		t.Fatal("the lists are not on one of two servers")
	}
	left.refuses(t, "a@first.example")
	lost.stop()
	logs(left.Server, "servers connected: 1 of 2; they have no leader")
	harness.WaitFor(t, "the gate says that the servers do not answer", func() bool { return left.status().State == admin.FleetNotConnected })
	left.refuses(t, "a@first.example") // mail goes on
}

// holdsLists reports whether the server on the machine of a gate holds the lists of the fleet.
func (m *member) holdsLists(t *testing.T) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(m.Dir, "state/fleet/server/jetstream/*/streams/KV_spamgate-lists"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// TestServerTrouble has a server that cannot run, and says why: the gate serves, uses the other servers,
// and says what to do.
func TestServerTrouble(t *testing.T) {
	t.Parallel()
	gates := startServers(t, initFleet(t, "mx1", "mx2", "mx3"))
	gates[2].waitAdded(t, "first.example")
	bad := gates[2]
	c, err := config.Load(filepath.Join(bad.Dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}

	// Another process has the store.
	second := harness.LaunchFleetd(t, bad.Dir)
	if code := second.Wait(); code != 2 || !strings.Contains(second.Log.String(), "spamgate-fleetd: starting the server of the fleet: "+c.Fleet.Server.Dir+": another process uses this store") {
		t.Errorf("exit code %d", code)
	}

	// It does not run: the gate uses the others, also after a start.
	bad.stop()
	bad.Server = nil
	bad.start()
	bad.refuses(t, "a@first.example")
	const command = "systemctl enable --now spamgate-fleetd"
	var f admin.Fleet
	harness.WaitFor(t, "the gate uses other servers, and says what to do", func() bool {
		f = bad.status()
		return f.State == admin.FleetConnected && strings.Contains(fmt.Sprint(f.Problems), command)
	})
	if text := bad.Command(t, 0, "health"); !strings.Contains(text, command) {
		t.Error(text)
	}
	logs(bad.Gate, command)
	bad.waitAdded(t, "second.example")

	// Another program has the port.
	l, err := net.Listen("tcp", c.Fleet.Server.Listen)
	if err != nil {
		t.Fatal(err)
	}
	second = harness.LaunchFleetd(t, bad.Dir)
	if code := second.Wait(); code != 2 || !strings.Contains(second.Log.String(), "give the server another port, or stop the program that has it") {
		t.Errorf("exit code %d", code)
	}
	l.Close()

	// It starts after the gate. SIGHUP reads the certificate again.
	bad.Server = harness.LaunchFleetd(t, bad.Dir)
	harness.WaitFor(t, "all is well", func() bool { return len(bad.status().Problems) == 0 })
	bad.Server.WaitRecord("server of the fleet runs")
	bad.Server.Signal(syscall.SIGHUP)
	bad.Server.WaitRecord("server of the fleet has read its certificate again; other changes need a restart")

	// It has other credentials: no route connects.
	kill(bad.Server)
	if err := os.WriteFile(filepath.Join(bad.Dir, "fleet", "token"), []byte("another-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad.Server = harness.LaunchFleetd(t, bad.Dir)
	logs(bad.Server, "another server has other credentials")
	logs(bad.Server, "servers connected: 1 of 3")
	logs(gates[0].Server, "another server has other credentials")
	bad.refuses(t, "a@first.example")
	gates[0].waitAdded(t, "third.example")
}

// TestServerDamaged starts a server whose store has been damaged, which says so: the gates use the other
// servers. Without the store the server gets everything from the others.
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
	logs(g.Server, "the store is damaged: stop this server, remove the directory")
	g.waitAdded(t, "second.example")
	g.stop()
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	g.start()
	waitServers(t, gates[1], 3)
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
	gates := startMachines(t, dirs...)
	full := filepath.Join(store, "full")
	if out, err := exec.Command(harness.Program(t, "dd", "coreutils"), "if=/dev/zero", "of="+full, "bs=64k").CombinedOutput(); err == nil {
		t.Fatalf("the disk is not full: %s", out)
	}
	n := 0
	harness.WaitFor(t, "the server names the disk", func() bool {
		n++
		gates[0].add(fmt.Sprintf("entry%d.example", n))
		return strings.Contains(gates[2].Server.Log.String(), "no space left")
	})
	gates[1].waitAdded(t, "last.example")
	gates[2].refuses(t, "a@last.example")
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	waitServers(t, gates[1], 3)
	waitEqual(t, gates...)
}

// succession returns a gate that can hand over, with a server beside it.
func succession(t *testing.T, s harness.Setup, name, program string) (*member, *harness.Succession) {
	t.Helper()
	dir := dirOf(t, s)
	server := harness.LaunchFleetd(t, dir)
	g := harness.LaunchSuccession(t, dir, nil, nil, program, "serve")
	g.Server = server
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
