package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// systemd plays the service manager: it holds the listening socket, and takes
// notices.
type systemd struct {
	t       testing.TB
	socket  *os.File
	addr    string
	notices *net.UnixConn
}

func newSystemd(t testing.TB) *systemd {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &systemd{t: t, addr: l.Addr().String()}
	if s.socket, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.socket.Close() })
	s.notices, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(shortDir(t), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.notices.Close() })
	return s
}

// start starts a gate in a directory as a service with the socket.
func (s *systemd) start(dir string) *succession {
	s.t.Helper()
	env := []string{"NOTIFY_SOCKET=" + s.notices.LocalAddr().String()}
	// The shell gives its own process number, which the gate has after the exec.
	g := launchReaped(s.t, dir, []*os.File{s.socket}, env,
		tool(s.t, "sh", "dash"), "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, binary(s.t))
	g.addr = g.waitListening()
	return g
}

// want wants the next notice to be this one.
func (s *systemd) want(notice string) {
	s.t.Helper()
	s.notices.SetReadDeadline(time.Now().Add(lateLimit))
	b := make([]byte, 4096)
	n, err := s.notices.Read(b)
	if err != nil || string(b[:n]) != notice {
		s.t.Errorf("systemd was told %q, %v; want %q", b[:n], err, notice)
	}
}

// TestHandoverSystemd hands over a gate that is a service of systemd's, and whose
// socket is systemd's.
func TestHandoverSystemd(t *testing.T) {
	t.Parallel()
	sd := newSystemd(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), setup{listen: "systemd"}.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	g := sd.start(dir)
	sd.want("READY=1")
	for i := range 2 {
		g.handOver()
		sd.want(fmt.Sprintf("MAINPID=%d\nREADY=1", g.process.Pid))
		g.waitNth(i+2, "listening") // a process writes its log beside what it does: systemd may hear of it first
		if n := len(g.records("listening", "addr", sd.addr)); n != i+2 {
			t.Errorf("%d processes listened on systemd's socket, want %d", n, i+2)
		}
		mustDial(t, sd.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "socket"))
	}
	g.signal(syscall.SIGHUP)
	sd.want("RELOADING=1")
	sd.want("READY=1")
	g.waitNth(2, "ended") // neither has said that the service stops
	g.signal(syscall.SIGTERM)
	sd.want("STOPPING=1")
	if code := g.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	g.wantEnded(3)
}

// TestRestartSystemd restarts a gate, whose socket systemd holds, while clients
// send through it. They may be told 421, but everyone gets a connection.
func TestRestartSystemd(t *testing.T) {
	t.Parallel()
	const restarts = 5
	sd := newSystemd(t)
	sink := smtptest.NewSink(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), setup{listen: "systemd", nextHop: "smtp://" + sink.Addr()}.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	g := sd.start(dir)
	sd.want("READY=1")
	l := startLoad(t, sd.addr, true)
	for range restarts {
		l.during(scale(1000)/restarts, func() {
			g.stop()
			sd.want("STOPPING=1")
			g = sd.start(dir)
			sd.want("READY=1")
		})
	}
	sent := l.stop()
	g.stop()
	wantOnce(t, sink, sent)
	t.Logf("%d messages, %d times 421", len(sent), l.told.Load())
}
