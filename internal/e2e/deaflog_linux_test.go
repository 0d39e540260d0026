package e2e

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
)

// deafLog is a log that nobody reads.
type deafLog struct {
	output string   // [log] output
	stderr *os.File // where standard error of the gate goes, if not to the test

	// read begins to read the log. Each line that comes is sent, without what the
	// output's protocol has before it.
	read func() <-chan string
}

// deafPipe is standard error as a pipe that is full.
func deafPipe(t *testing.T, flags int) *deafLog {
	t.Helper()
	r, w := rawPipe(t, flags)
	size, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if flags != 0 {
		if err := unix.SetNonblock(int(w.Fd()), true); err != nil { // Fd has changed it
			t.Fatal(err)
		}
	}
	if _, err := w.WriteString(strings.Repeat("\n", size)); err != nil {
		t.Fatal(err)
	}
	return &deafLog{output: "stderr", stderr: w, read: func() <-chan string {
		w.Close() // the gate has its own
		return scanLines(r)
	}}
}

// rawPipe is a pipe as other programs make it: without flags, its ends block.
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

func scanLines(r io.Reader) <-chan string {
	found := make(chan string, 1<<17) // more than a test logs: nobody waits
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

// deafDatagrams is a socket that takes datagrams until it is full.
func deafDatagrams(t *testing.T, output, path string, line func(datagram string) string) *deafLog {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &deafLog{output: output, read: func() <-chan string {
		found := make(chan string, 1<<17)
		go func() {
			defer close(found)
			buf := make([]byte, 64<<10)
			for {
				n, err := conn.Read(buf)
				if err != nil {
					return // the test is over
				}
				found <- line(string(buf[:n]))
			}
		}()
		return found
	}}
}

// deafStream is a syslog socket that takes connections and never reads.
func deafStream(t *testing.T, path string) *deafLog {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &deafLog{output: "syslog", read: func() <-chan string {
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

// syslogLine is the line in what syslog is sent.
func syslogLine(datagram string) string {
	_, line, _ := strings.Cut(datagram, "]: ")
	return strings.TrimSuffix(line, "\n")
}

// journalLine is the line in what the journal is sent.
func journalLine(datagram string) string {
	for line := range strings.Lines(datagram) {
		if text, ok := strings.CutPrefix(line, "MESSAGE="); ok {
			return strings.TrimSuffix(text, "\n")
		}
	}
	return ""
}

// privateRun gives the test a /run of its own, in which no log is read but that of
// the test, and returns the sockets of syslog and journal in it.
func privateRun(t *testing.T) (syslog, journal string) {
	t.Helper()
	privateMounts(t)
	if err := unix.Mount("none", "/run", "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount("/run", unix.MNT_DETACH) })
	if err := os.MkdirAll("/run/systemd/journal", 0o755); err != nil {
		t.Fatal(err)
	}
	syslog = "/run/syslog" // by way of /var/run, which is /run
	if info, err := os.Stat("/dev/log"); err == nil && info.Mode()&os.ModeSocket != 0 {
		t.Skip("a syslog daemon of this machine listens at /dev/log itself")
	}
	return syslog, "/run/systemd/journal/socket"
}

// eachDeafLog runs a test with each log that nobody reads.
func eachDeafLog(t *testing.T, test func(t *testing.T, l *deafLog)) {
	for name, make := range map[string]func(t *testing.T) *deafLog{
		"pipe":         func(t *testing.T) *deafLog { return deafPipe(t, 0) },
		"nonblocking":  func(t *testing.T) *deafLog { return deafPipe(t, unix.O_NONBLOCK) },
		"syslog":       func(t *testing.T) *deafLog { s, _ := privateRun(t); return deafDatagrams(t, "syslog", s, syslogLine) },
		"syslogstream": func(t *testing.T) *deafLog { s, _ := privateRun(t); return deafStream(t, s) },
		"journal":      func(t *testing.T) *deafLog { _, j := privateRun(t); return deafDatagrams(t, "journal", j, journalLine) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

// deafSetup is the configuration of a gate with such a log, in which a client may be
// refused as often as he likes.
func deafSetup(t *testing.T, l *deafLog) setup {
	return setup{listen: freeAddr(t), keys: map[string]string{
		"log":    fmt.Sprintf("output = %q", l.output),
		"listen": "max_refusals = 100000\nshutdown_timeout = \"30m\"",
	}}
}

// startDeaf starts a gate, which cannot say that it listens.
func startDeaf(t *testing.T, l *deafLog, s setup) *gate {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	// The note is in the log alone: a few thousand refusals are more than it holds.
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail ## "+strings.Repeat("x", 2000)+"\n")
	cmd := exec.Command(binary(t), "serve")
	if l.stderr != nil {
		cmd = exec.Command("sh", "-c", `exec "$0" serve 2>&3 3>&-`, binary(t))
		cmd.ExtraFiles = []*os.File{l.stderr}
	}
	g := launch(t, dir, cmd)
	g.addr = s.listen
	pollFor(t, "the gate to answer", func() bool {
		select {
		case code := <-g.exited:
			g.ended = true
			t.Fatalf("the gate has ended with exit code %d", code)
		default:
		}
		return greets(g.addr)
	})
	return g
}
