package smtpfilter_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// The benchmarks run whole sessions over sockets of the loopback: a client and a
// sink that allocate nothing, and between them a gate that logs, as text, into
// nothing. So the allocations are the gate's, and the times hold what the kernel
// and the two ends cost, too.

// refusal is what a listed sender costs beyond the connection.
var refusal = []string{"MAIL FROM:<a@listed.example>\r\n", "RCPT TO:<b@example.net>\r\n", "RSET\r\n"}

// BenchmarkRefusal refuses listed senders on one connection.
func BenchmarkRefusal(b *testing.B) {
	c := dialBench(b, benchGate(b))
	b.ReportAllocs()
	for b.Loop() {
		for _, command := range refusal {
			c.exchange(command, 1)
		}
	}
}

// BenchmarkRefusalPipelined is BenchmarkRefusal with commands in one packet.
func BenchmarkRefusalPipelined(b *testing.B) {
	c := dialBench(b, benchGate(b))
	flight := refusal[0] + refusal[1] + refusal[2]
	b.ReportAllocs()
	for b.Loop() {
		c.exchange(flight, len(refusal))
	}
}

// BenchmarkRefusedConnection refuses a listed sender on each of its connections.
func BenchmarkRefusedConnection(b *testing.B) {
	addr := benchGate(b)
	b.ReportAllocs()
	for b.Loop() {
		c := dialBench(b, addr)
		for _, command := range refusal {
			c.exchange(command, 1)
		}
		c.exchange("QUIT\r\n", 1)
		c.conn.Close()
	}
}

// BenchmarkMessage passes messages on over kept connections.
func BenchmarkMessage(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			c := dialBench(b, benchGate(b))
			message := "From: <a@clean.example>\r\nSubject: benchmark\r\n\r\n" +
				string(bytes.Repeat([]byte("A line of a message, of which it has as many as it takes to fill it.\r\n"), size/70)) + ".\r\n"
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			for b.Loop() {
				c.exchange("MAIL FROM:<a@clean.example>\r\n", 1)
				c.exchange("RCPT TO:<b@example.net>\r\n", 1)
				c.exchange("DATA\r\n", 1)
				c.exchange(message, 1)
			}
		})
	}
}

// BenchmarkHistory refuses and passes on as the benchmarks above, with a History that does
// nothing: what its decisions cost the session.
func BenchmarkHistory(b *testing.B) {
	const message = "From: <a@clean.example>\r\n\r\nx\r\n.\r\n"
	pass := []string{"MAIL FROM:<a@clean.example>\r\n", "RCPT TO:<b@example.net>\r\n", "DATA\r\n", message}
	for _, c := range []struct {
		name    string
		history smtpfilter.History
		session []string
	}{
		{"refused/none", nil, refusal},
		{"refused/recorded", idleHistory(false), refusal},
		{"accepted/none", nil, pass},
		{"accepted/counted", idleHistory(false), pass},
		{"accepted/recorded", idleHistory(true), pass},
	} {
		b.Run(c.name, func(b *testing.B) {
			client := dialBench(b, benchGateWith(b, c.history))
			b.ReportAllocs()
			for b.Loop() {
				for _, command := range c.session {
					client.exchange(command, 1)
				}
			}
		})
	}
}

// idleHistory is a History that does nothing, and wants accepted messages or not.
type idleHistory bool

func (h idleHistory) Accepted(time.Time) bool { return bool(h) }
func (idleHistory) Record(verdict.Decision)   {}

// benchGate starts a gate with a sink as next hop and returns the gate's address.
func benchGate(b testing.TB) string { return benchGateWith(b, nil) }

// benchGateWith is benchGate with a History.
func benchGateWith(b testing.TB, h smtpfilter.History) string {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { null.Close() })
	o := gateOptions{
		nextHop: benchSink(b),
		checker: mustJudge(b, "envelope a@listed.example reject a reason"),
		policy:  smtpfilter.Policy{HeaderFields: []string{"From"}},
		log:     slog.New(slog.NewTextHandler(null, nil)),
		reuse:   true,
		history: h,
	}
	o.wire.MaxRefusals = 1 << 30
	return newGate(b, o).addr
}

// benchSink starts a mail server that accepts and drops everything, and returns its
// address. It ends with the benchmark.
func benchSink(b testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go swallow(c)
		}
	}()
	return l.Addr().String()
}

// swallow runs the sink's side of a session.
func swallow(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 64<<10)
	replies := map[byte][]byte{
		'E': []byte("250-sink.example\r\n250 PIPELINING\r\n"),
		'D': []byte("354 go on\r\n"),
	}
	ok := []byte("250 2.0.0 Ok\r\n")
	c.Write([]byte("220 sink.example\r\n"))
	inData := false
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if inData && string(line) != ".\r\n" {
			continue
		}
		reply := replies[line[0]]
		if reply == nil {
			reply = ok
		}
		inData = line[0] == 'D'
		c.Write(reply)
	}
}

// benchClient is an SMTP client that allocates nothing.
type benchClient struct {
	b    testing.TB
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// dialBench connects and says EHLO.
func dialBench(b testing.TB, addr string) *benchClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	c := &benchClient{b: b, conn: conn}
	c.in = bufio.NewReader(conn)
	c.exchange("", 1)
	c.exchange("EHLO client.example\r\n", 1)
	return c
}

// exchange sends a text and reads a number of replies.
func (c *benchClient) exchange(text string, replies int) {
	c.out = append(c.out[:0], text...)
	if _, err := c.conn.Write(c.out); err != nil {
		c.b.Fatal(err)
	}
	for replies > 0 {
		line, err := c.in.ReadSlice('\n')
		if err != nil || len(line) < 4 || line[0] == '4' {
			c.b.Fatalf("%.40q was answered with %q: %v", text, line, err)
		}
		if line[3] == ' ' {
			replies--
		}
	}
}
