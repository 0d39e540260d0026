package logging

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openSyslog opens a log to a syslog daemon at a socket.
func openSyslog(t *testing.T, o Options, path string) *Log {
	t.Helper()
	l, err := newSyslog(o, path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// listen opens a datagram socket, and returns its path and a function that receives
// from it. The path is relative, so that it always fits in a sockaddr_un.
func listen(t *testing.T) (path string, receive func() string) {
	t.Helper()
	t.Chdir(t.TempDir())
	path = "socket"
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return path, func() string {
		t.Helper()
		buf := make([]byte, 64<<10)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestSyslog(t *testing.T) {
	path, receive := listen(t)
	log := openSyslog(t, Options{Level: slog.LevelDebug}, path)
	defer log.Close()
	l := log.Logger
	const mail = 2 << 3 // the facility
	for level, priority := range map[slog.Level]string{
		slog.LevelDebug: "<23>", slog.LevelInfo: "<22>", slog.LevelInfo + 1: "<22>", slog.LevelWarn: "<20>", slog.LevelError: "<19>",
	} {
		l.Log(t.Context(), level, "mail\nrefused", "from", "\x1b[31m")
		got := receive()
		if !strings.HasPrefix(got, priority) || !strings.Contains(got, " spamgate[") {
			t.Errorf("%v: got %q, want priority %s (facility %d)", level, got, priority, mail)
		}
		_, line, _ := strings.Cut(got, "]: ")
		checkLine(t, line)
		if want := `msg="mail\nrefused" from="\x1b[31m"` + "\n"; !strings.HasSuffix(line, want) || strings.Contains(line, "time=") {
			t.Errorf("got %q, want %q at its end", line, want)
		}
	}
}

func TestSyslogJSON(t *testing.T) {
	path, receive := listen(t)
	log := openSyslog(t, Options{Format: FormatJSON}, path)
	defer log.Close()
	l := log.Logger
	l.Debug("not logged")
	l.With("a", 1).WithGroup("g").Info("m", "b", 2)
	_, line, _ := strings.Cut(receive(), "]: ")
	var got any
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if want := `{"level":"INFO","msg":"m","a":1,"g":{"b":2}}` + "\n"; line != want {
		t.Errorf("got %s, want %s", line, want)
	}
}

// TestSyslogLost checks that lines that syslog refuses go to standard error.
func TestSyslogLost(t *testing.T) {
	path, _ := listen(t)
	var stderr bytes.Buffer
	l := openSyslog(t, Options{Stderr: &stderr}, path)
	l.Logger.Info("long", "text", strings.Repeat("x", 4<<20)) // longer than any datagram
	l.Logger.Info("short")
	l.Close()
	if got := stderr.String(); !strings.HasPrefix(got, "level=INFO msg=long text=xxx") || strings.Count(got, "\n") != 1 {
		t.Errorf("standard error has %.100q", got)
	}
}

// TestSyslogRestarted restarts the daemon: lines in between go to standard error.
func TestSyslogRestarted(t *testing.T) {
	t.Chdir(t.TempDir())
	var stderr bytes.Buffer
	out := &datagrams{stderr: &stderr, connect: func() (net.Conn, error) { return net.Dial("unixgram", "socket") }}
	send := func(line string) {
		var b batch
		b.add([]byte("<22>"+line+"\n"), len("<22>"), 0)
		if done, kept := out.write(b); done != 1 || kept != 1 {
			t.Errorf("%s: %d, %d", line, done, kept)
		}
	}
	for _, line := range []string{"first", "third"} {
		os.Remove("socket") // of the one that has gone
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "socket", Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		send(line)
		buf := make([]byte, 100)
		n, err := conn.Read(buf)
		if got := string(buf[:n]); err != nil || got != "<22>"+line+"\n" {
			t.Errorf("got %q, %v", got, err)
		}
		conn.Close()
		send("without " + line)
	}
	if got, want := stderr.String(), "without first\nwithout third\n"; got != want {
		t.Errorf("standard error has %q, want %q", got, want)
	}
}

func TestNoSyslog(t *testing.T) {
	_, err := newSyslog(Options{Stderr: io.Discard}, filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(err.Error(), `output = "stderr"`) {
		t.Errorf("got %v", err)
	}
}

// journalEntry reads an entry of the journal's native protocol
// (systemd.io/JOURNAL_NATIVE_PROTOCOL).
func journalEntry(t *testing.T, datagram string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for rest := datagram; rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		name, value, simple := strings.Cut(line, "=")
		if !simple {
			size := binary.LittleEndian.Uint64([]byte(rest[:8]))
			value, rest = rest[8:8+size], rest[8+size+1:]
		}
		fields[name] = value
	}
	return fields
}

func TestJournal(t *testing.T) {
	path, receive := listen(t)
	machine := journalSocket
	journalSocket = path
	defer func() { journalSocket = machine }()

	l := newLogger(t, Options{Output: OutputJournal, Level: slog.LevelDebug})
	l = l.With("id", "x1").WithGroup("next-hop").With("addr", "192.0.2.1:25")
	for level, priority := range map[slog.Level]string{
		slog.LevelDebug: "7", slog.LevelInfo: "6", slog.LevelWarn: "4", slog.LevelError: "3",
	} {
		l.Log(t.Context(), level, "mail\nrefused", "reply", "550 \x1b[31mno", "took", time.Second,
			slog.Group("g", "rcpt", []string{"a@b.example"}), "", nil)
		want := map[string]string{
			"MESSAGE": `level=` + level.String() + ` msg="mail\nrefused" id=x1 next-hop.addr=192.0.2.1:25` +
				` next-hop.reply="550 \x1b[31mno" next-hop.took=1s next-hop.g.rcpt=[a@b.example]`,
			"PRIORITY":                 priority,
			"SYSLOG_IDENTIFIER":        "spamgate",
			"SYSLOG_FACILITY":          "2",
			"SPAMGATE_ID":              "x1",
			"SPAMGATE_NEXT_HOP_ADDR":   "192.0.2.1:25",
			"SPAMGATE_NEXT_HOP_REPLY":  `550 \x1b[31mno`,
			"SPAMGATE_NEXT_HOP_TOOK":   "1s",
			"SPAMGATE_NEXT_HOP_G_RCPT": "[a@b.example]",
		}
		got := journalEntry(t, receive())
		if when, err := time.Parse(time.RFC3339Nano, got["SPAMGATE_TIME"]); err != nil || time.Since(when) < 0 {
			t.Errorf("the time is %q, %v", got["SPAMGATE_TIME"], err)
		}
		delete(got, "SPAMGATE_TIME")
		if !maps.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestNoJournal(t *testing.T) {
	machine := journalSocket
	journalSocket = filepath.Join(t.TempDir(), "none")
	defer func() { journalSocket = machine }()
	if _, err := New(Options{Output: OutputJournal}); err == nil || !strings.Contains(err.Error(), `output = "stderr"`) {
		t.Errorf("got %v", err)
	}
}

func TestFieldName(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"id", "SPAMGATE_ID"},
		{"message_id", "SPAMGATE_MESSAGE_ID"},
		{"tls-Version1", "SPAMGATE_TLS_VERSION1"},
		{"ä=\n", "SPAMGATE____"},
		{strings.Repeat("x", 100), "SPAMGATE_" + strings.Repeat("X", 55)},
	} {
		if got := fieldName([]string{c.path}); got != c.want {
			t.Errorf("%q: got %s, want %s", c.path, got, c.want)
		}
	}
}
