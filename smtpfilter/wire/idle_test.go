package wire_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"spamgate/smtpfilter/wire"
)

// What an idle connection may cost, in bytes: go-smtp's own buffers are 8 KiB of
// it, and the goroutine's stack most of the rest.
const idleBytes = 20 << 10

// Environment of the process that holds idle clients.
const (
	idleAddr  = "WIRE_TEST_IDLE_ADDR"
	idleCount = "WIRE_TEST_IDLE_COUNT"
)

// TestIdleClients is not a test but the process with the clients of TestIdleMemory, so that
// their memory does not count. It ends when its standard input does.
func TestIdleClients(t *testing.T) {
	addr := os.Getenv(idleAddr)
	if addr == "" {
		t.Skip("run by TestIdleMemory")
	}
	count, _ := strconv.Atoi(os.Getenv(idleCount))
	for range count {
		c := dial(t, addr)
		if c.reply() != "220" {
			t.Fatal("no greeting")
		}
		// A whole transaction that comes to nothing, so that all has been used
		// that a connection uses.
		io.WriteString(c, "EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n")
		io.WriteString(c, "BDAT 12 LAST\r\nSubject: x\r\nRSET\r\n")
		for range 5 {
			if c.reply() != "250" {
				t.Fatal("not taken")
			}
		}
	}
	os.Stdout.WriteString("ready\n")
	io.Copy(io.Discard, os.Stdin)
}

// TestIdleMemory measures what connections cost that wait for their clients.
func TestIdleMemory(t *testing.T) {
	count := 2000
	if testing.Short() {
		count = 1000 // so many that what the process itself needs more is little of each
	}
	g := newGate(t, wire.Config{Extensions: func(*wire.Conn) wire.Extensions {
		return wire.Extensions{"PIPELINING": nil, "8BITMIME": nil, "DSN": nil, "SMTPUTF8": nil, "CHUNKING": nil}
	}})
	before := memoryInUse()
	stop := startIdle(t, g.addr, count)
	after := memoryInUse()
	stop()
	each := (int64(after) - int64(before)) / int64(count)
	t.Logf("%d bytes for each of %d connections", each, count)
	if each > idleBytes && !raceEnabled { // what watches for races costs 4 KiB, too
		t.Errorf("an idle connection costs %d bytes, more than %d", each, idleBytes)
	}
}

// memoryInUse is the heap and the stacks, in bytes.
func memoryInUse() uint64 {
	// What a pool holds is gone with the second collection.
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// startIdle opens connections in a process of its own, and returns once all of
// them are idle.
func startIdle(t *testing.T, addr string, count int) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestIdleClients$", "-test.v")
	cmd.Env = append(os.Environ(), idleAddr+"="+addr, idleCount+"="+strconv.Itoa(count))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		t.Log(lines.Text())
	}
	return func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the clients: %v", err)
		}
	}
}

// BenchmarkCommands is a kept connection that asks and waits.
func BenchmarkCommands(b *testing.B) {
	g := newGate(b, wire.Config{})
	c := dial(b, g.addr)
	c.reply()
	io.WriteString(c, "EHLO client.example\r\n")
	c.reply()
	c.SetDeadline(time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		io.WriteString(c, "NOOP\r\n")
		if c.reply() != "250" {
			b.Fatal("NOOP is refused")
		}
	}
}

// BenchmarkConnections is a message for each connection.
func BenchmarkConnections(b *testing.B) {
	g := newGate(b, wire.Config{})
	buffer := make([]byte, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		c, err := net.Dial("tcp", g.addr)
		if err != nil {
			b.Fatal(err)
		}
		for _, line := range []string{
			"EHLO client.example\r\n", "MAIL FROM:<a@example.com>\r\n", "RCPT TO:<b@example.net>\r\n", "DATA\r\n",
			"Subject: x\r\n\r\nbody\r\n.\r\n", "QUIT\r\n", "",
		} {
			if _, err := c.Read(buffer); err != nil {
				b.Fatal(err)
			}
			io.WriteString(c, line)
		}
		c.Close()
		g.forget()
	}
}
