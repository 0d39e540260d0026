package restarts

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// A systemd plays the service manager: it holds the listening socket and receives
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
func (s *systemd) start(dir string) *harness.Succession {
	s.t.Helper()
	env := []string{"NOTIFY_SOCKET=" + s.notices.LocalAddr().String()}
	// The gate has the shell's process ID after the exec.
	g := harness.LaunchSuccession(s.t, dir, []*os.File{s.socket}, env,
		harness.Program(s.t, "sh", "dash"), "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, harness.Binary(s.t))
	g.Addr = g.WaitListening()
	return g
}

// want checks the next notice.
func (s *systemd) want(notice string) {
	s.t.Helper()
	s.notices.SetReadDeadline(time.Now().Add(harness.WorkTimeout))
	b := make([]byte, 4096)
	n, err := s.notices.Read(b)
	if err != nil || string(b[:n]) != notice {
		s.t.Errorf("systemd was told %q, %v; want %q", b[:n], err, notice)
	}
}

// TestHandoverSystemd hands over a gate that is a service of systemd, with systemd's
// socket.
func TestHandoverSystemd(t *testing.T) {
	t.Parallel()
	sd := newSystemd(t)
	dir := harness.Setup{Listen: "systemd"}.Dir(t)
	g := sd.start(dir)
	sd.want("READY=1")
	for i := range 2 {
		g.HandOver()
		sd.want(fmt.Sprintf("MAINPID=%d\nREADY=1", g.Process.Pid))
		g.WaitNth(i+2, "listening") // the log may be later than the notice
		if n := len(g.Records("listening", "addr", sd.addr)); n != i+2 {
			t.Errorf("%d processes listened on systemd's socket, want %d", n, i+2)
		}
		harness.MustDial(t, sd.addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "socket"))
	}
	g.Signal(syscall.SIGHUP)
	sd.want("RELOADING=1")
	sd.want("READY=1")
	g.WaitNth(2, "ended") // neither has sent STOPPING
	g.Signal(syscall.SIGTERM)
	sd.want("STOPPING=1")
	if code := g.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	g.WantEnded(3)
}

// TestRestartSystemd restarts a gate while clients send through it and systemd holds its
// socket. They may get 421, but each gets a connection.
func TestRestartSystemd(t *testing.T) {
	t.Parallel()
	const restarts = 5
	sd := newSystemd(t)
	sink := smtptest.NewSink(t)
	dir := harness.Setup{Listen: "systemd", NextHop: "smtp://" + sink.Addr()}.Dir(t)
	g := sd.start(dir)
	sd.want("READY=1")
	l := harness.StartLoad(t, sd.addr, true)
	for range restarts {
		l.During(harness.Scale(1000)/restarts, func() {
			g.Stop()
			sd.want("STOPPING=1")
			g = sd.start(dir)
			sd.want("READY=1")
		})
	}
	sent := l.Stop()
	g.Stop()
	harness.WantOnce(t, sink, sent)
	t.Logf("%d messages, %d times 421", len(sent), l.Tempfailed.Load())
}
