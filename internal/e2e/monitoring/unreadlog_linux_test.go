package monitoring

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// An unreadLog is a log that nobody reads.
type unreadLog struct {
	output string   // [log] output
	stderr *os.File // the gate's standard error, or nil if it goes to the test

	// read begins to read the log, and sends each line without what the protocol puts
	// before it.
	read func() <-chan string
}

// unreadPipe returns a standard error that is a full pipe.
func unreadPipe(t *testing.T, flags int) *unreadLog {
	t.Helper()
	r, w := rawPipe(t, flags)
	size, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if flags != 0 {
		if err := unix.SetNonblock(int(w.Fd()), true); err != nil { // Fd has set it to blocking
			t.Fatal(err)
		}
	}
	if _, err := w.WriteString(strings.Repeat("\n", size)); err != nil {
		t.Fatal(err)
	}
	return &unreadLog{output: "stderr", stderr: w, read: func() <-chan string {
		w.Close() // the gate has its own copy
		return scanLines(r)
	}}
}

// rawPipe makes a pipe as other programs do: without flags, its ends block.
func rawPipe(t *testing.T, flags int) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|flags); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "read end"), os.NewFile(uintptr(fds[1]), "write end")
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// scanLines sends the lines that it reads.
func scanLines(r io.Reader) <-chan string {
	found := make(chan string, 1<<17) // more than a test logs, so a send never waits
	go func() {
		defer close(found)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			found <- s.Text()
		}
	}()
	return found
}

// unreadDatagrams returns a log that is a socket for datagrams, which takes them until
// it is full.
func unreadDatagrams(t *testing.T, output, path string, line func(datagram string) string) *unreadLog {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &unreadLog{output: output, read: func() <-chan string {
		found := make(chan string, 1<<17)
		go func() {
			defer close(found)
			buf := make([]byte, 64<<10)
			for {
				n, err := conn.Read(buf)
				if err != nil {
					return // the test has ended
				}
				found <- line(string(buf[:n]))
			}
		}()
		return found
	}}
}

// unreadStream returns a log that is a syslog socket, which accepts connections and
// never reads.
func unreadStream(t *testing.T, path string) *unreadLog {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &unreadLog{output: "syslog", read: func() <-chan string {
		found := make(chan string, 1<<17)
		go func() {
			defer close(found)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			for line := range scanLines(conn) {
				found <- syslogLine(line)
			}
		}()
		return found
	}}
}

// syslogLine returns the log line in a datagram to syslog.
func syslogLine(datagram string) string {
	_, line, _ := strings.Cut(datagram, "]: ")
	return strings.TrimSuffix(line, "\n")
}

// journalLine returns the log line in a datagram to the journal.
func journalLine(datagram string) string {
	for line := range strings.Lines(datagram) {
		if text, ok := strings.CutPrefix(line, "MESSAGE="); ok {
			return strings.TrimSuffix(text, "\n")
		}
	}
	return ""
}

// privateRun gives the test its own /run, and returns the paths of the sockets of syslog
// and the journal in it.
func privateRun(t *testing.T) (syslog, journal string) {
	t.Helper()
	harness.PrivateMounts(t)
	if err := unix.Mount("none", "/run", "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount("/run", unix.MNT_DETACH) })
	if err := os.MkdirAll("/run/systemd/journal", 0o755); err != nil {
		t.Fatal(err)
	}
	syslog = "/run/syslog" // the gate finds it as /var/run/syslog
	if info, err := os.Stat("/dev/log"); err == nil && info.Mode()&os.ModeSocket != 0 {
		t.Skip("a syslog daemon of this machine listens at /dev/log itself")
	}
	return syslog, "/run/systemd/journal/socket"
}

// eachUnreadLog runs a test with each kind of log.
func eachUnreadLog(t *testing.T, test func(t *testing.T, l *unreadLog)) {
	for name, make := range map[string]func(t *testing.T) *unreadLog{
		"pipe":        func(t *testing.T) *unreadLog { return unreadPipe(t, 0) },
		"nonblocking": func(t *testing.T) *unreadLog { return unreadPipe(t, unix.O_NONBLOCK) },
		"syslog": func(t *testing.T) *unreadLog {
			s, _ := privateRun(t)
			return unreadDatagrams(t, "syslog", s, syslogLine)
		},
		"syslogstream": func(t *testing.T) *unreadLog { s, _ := privateRun(t); return unreadStream(t, s) },
		"journal": func(t *testing.T) *unreadLog {
			_, j := privateRun(t)
			return unreadDatagrams(t, "journal", j, journalLine)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

// unreadSetup returns the configuration of a gate with that log, which may refuse a
// client any number of times.
func unreadSetup(t *testing.T, l *unreadLog) harness.Setup {
	return harness.Setup{Listen: harness.FreeAddr(t), Keys: map[string]string{
		"log":    fmt.Sprintf("output = %q", l.output),
		"listen": "max_refusals = 100000\nshutdown_timeout = \"30m\"",
	}}
}

// startUnread starts a gate, whose log cannot tell that it listens.
func startUnread(t *testing.T, l *unreadLog, s harness.Setup) *harness.Gate {
	t.Helper()
	dir := t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	// A long note, which only the log has: a few thousand refusals fill the log's queue.
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail ## "+strings.Repeat("x", 2000)+"\n")
	cmd := exec.Command(harness.Binary(t), "serve")
	if l.stderr != nil {
		cmd = exec.Command("sh", "-c", `exec "$0" serve 2>&3 3>&-`, harness.Binary(t))
		cmd.ExtraFiles = []*os.File{l.stderr}
	}
	g := harness.Launch(t, dir, cmd)
	g.Addr = s.Listen
	harness.WaitFor(t, "the gate to answer", func() bool {
		select {
		case code := <-g.Exited:
			g.Ended = true
			t.Fatalf("the gate has ended with exit code %d", code)
		default:
		}
		return harness.Greets(g.Addr)
	})
	return g
}
