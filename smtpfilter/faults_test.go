package smtpfilter_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// client is an SMTP client of a test, that can say anything.
type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(waitLimit))
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

// dialTLS is dial for a gate that begins with TLS.
func dialTLS(t testing.TB, addr string) *client {
	t.Helper()
	c := dial(t, addr)
	secure := tls.Client(c.Conn, &tls.Config{RootCAs: smtptest.Roots(), ServerName: smtptest.ServerName})
	c.Conn, c.in = secure, bufio.NewReader(secure)
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// sendBytewise sends each byte in its own write, and so mostly in its own packet. The gate
// may disconnect before the end.
func (c *client) sendBytewise(text string) {
	for i := range len(text) {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			return
		}
	}
}

// reply reads one reply and checks that it begins with want.
func (c *client) reply(want string) string {
	c.t.Helper()
	got, err := c.readReply()
	if err != nil || !strings.HasPrefix(got, want) {
		c.t.Fatalf("reply %q, %v; want %s", got, err, want)
	}
	return got
}

func (c *client) readReply() (string, error) {
	var all string
	for {
		line, err := c.in.ReadString('\n')
		all += line
		if err != nil || len(line) < 4 || line[3] != '-' {
			return all, err
		}
	}
}

// closed checks that the gate sends nothing more and disconnects.
func (c *client) closed() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v; want the end of the connection", rest, err)
	}
}

// toData brings the session to 354.
func (c *client) toData(from string) {
	c.t.Helper()
	c.reply("220")
	c.send("EHLO client.example\r\n")
	c.reply("250")
	c.mailToData(from)
}

func (c *client) mailToData(from string) {
	c.t.Helper()
	c.send("MAIL FROM:<" + from + ">\r\nRCPT TO:<b@example.net>\r\nDATA\r\n")
	c.reply("250")
	c.reply("250")
	c.reply("354")
}

// TestEndings sends every sequence that some server takes for the end of a message, with a
// second transaction after it, at once and byte by byte. At most one message may arrive,
// with all bytes up to the real end.
func TestEndings(t *testing.T) {
	const smuggled = "MAIL FROM:<smuggled@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nSubject: smuggled\r\n\r\nsmuggled\r\n.\r\n"
	data, err := os.ReadFile("wire/testdata/end-of-data.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, ending, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok || name[0] == '#' {
			continue
		}
		ending = smtptest.Expand(ending)
		for _, first := range []string{"Subject: visible\r\n", "Subject: visible\n"} {
			for _, bytewise := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%q/bytewise=%v", name, first[len(first)-2:], bytewise), func(t *testing.T) {
					sink := smtptest.NewSink(t)
					c := dial(t, newGate(t, gateOptions{nextHop: sink.Addr()}).addr)
					c.toData("a@example.com")
					input := first + "\r\nvisible" + ending + smuggled
					if bytewise {
						c.sendBytewise(input)
					} else {
						c.send(input)
					}
					reply, _ := c.readReply()
					io.WriteString(c, "QUIT\r\n")
					io.ReadAll(c.in)
					checkEnding(t, sink, input, reply)
				})
			}
		}
	}
}

func checkEnding(t *testing.T, sink *smtptest.Sink, input, reply string) {
	t.Helper()
	for _, cmd := range sink.Commands() {
		if strings.Contains(cmd.Line, "smuggled") {
			t.Errorf("executed: %s", cmd.Line)
		}
	}
	got := sink.Messages()
	if strings.HasPrefix(reply, "5") {
		if len(got) > 0 {
			t.Errorf("refused with %q, but delivered %q", reply, got[0].Body)
		}
		return
	}
	if len(got) != 1 || !strings.HasPrefix(reply, "250") {
		t.Fatalf("%d messages, reply %q", len(got), reply)
	}
	end := strings.Index(input, "\r\n.\r\n")
	if !bytes.HasSuffix(got[0].Raw, []byte(input[:end+2])) {
		t.Errorf("delivered %q, want all of %q", got[0].Raw, input[:end+2])
	}
}

// TestSilenceInsideData stops in the middle of a message. The client must receive 421, the
// gate must not execute what it sends later, and nothing may be delivered.
func TestSilenceInsideData(t *testing.T) {
	sink := smtptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: sink.Addr(), wire: smtpfilter.Settings{Rules: wire.Rules{DataTimeout: 50 * time.Millisecond}}})
	c := dial(t, g.addr)
	c.toData("a@example.com")
	c.send("Subject: x\r\n\r\nMAIL FROM:<body@example.com>\r\n")
	c.reply("421")
	io.WriteString(c, "MAIL FROM:<body@example.com>\r\nRCPT TO:<b@example.net>\r\n.\r\n")
	c.closed()
	g.stop(t)
	checkNothingDelivered(t, sink, "body@example.com")
}

// TestFaultInsideData puts a NUL, a bare CR, a bare LF and the size limit at many offsets
// of a message full of commands. None may be executed.
func TestFaultInsideData(t *testing.T) {
	const body = "Subject: x\r\n\r\n" +
		"MAIL FROM:<body@example.com>\r\nRCPT TO:<body@example.net>\r\nDATA\r\nRSET\r\n.. \r\nQUIT\r\n"
	sink := smtptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: sink.Addr()})
	small := newGate(t, gateOptions{nextHop: sink.Addr(), wire: smtpfilter.Settings{Rules: wire.Rules{MaxMessageBytes: 40}}})
	for pos := range len(body) {
		for _, fault := range []string{"\x00", "\rx", "\nx"} {
			if pos > 0 && body[pos-1] == '\r' && fault[0] == '\n' {
				continue // completes a CRLF
			}
			c := dial(t, g.addr)
			c.toData("a@example.com")
			c.send(body[:pos] + fault + body[pos:] + "\r\n.\r\nMAIL FROM:<body@example.com>\r\n")
			c.reply("550 5.5.2")
			c.closed()
			c.Close()
		}
		if pos > 0 && body[pos-1] == '\r' {
			continue
		}
		c := dial(t, small.addr)
		c.toData("a@example.com")
		c.send(strings.Repeat("x", 40-min(pos, 40)) + body[:pos] + "\r\n" + body + ".\r\nMAIL FROM:<body@example.com>\r\n")
		c.reply("552 5.3.4")
		c.closed()
		c.Close()
	}
	g.stop(t)
	small.stop(t)
	checkNothingDelivered(t, sink, "body@example")
}

func checkNothingDelivered(t *testing.T, sink *smtptest.Sink, never string) {
	t.Helper()
	for _, m := range sink.Messages() {
		t.Errorf("delivered: %q", m.Body)
	}
	for _, cmd := range sink.Commands() {
		if strings.Contains(cmd.Line, never) {
			t.Errorf("executed: %s", cmd.Line)
		}
	}
}

// TestCutAnywhere cuts a client's connection at every byte of a session. The next hop must
// have the message exactly if its end was sent.
func TestCutAnywhere(t *testing.T) {
	const session = "EHLO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n" +
		"Subject: x\r\n\r\nbody\r\n..\r\n.\r\nQUIT\r\n"
	whole := strings.Index(session, "\r\n.\r\n") + len("\r\n.\r\n")
	for pos := range len(session) {
		sink := smtptest.NewSink(t)
		g := newGate(t, gateOptions{nextHop: sink.Addr()})
		c := dial(t, g.addr)
		c.send(session[:pos])
		c.Conn.(*net.TCPConn).CloseWrite()
		io.ReadAll(c.in)
		c.Close()
		g.stop(t)
		if got, want := len(sink.Messages()), pos >= whole; got == 1 != want || got > 1 {
			t.Errorf("cut at byte %d of %d, message whole: %v; %d delivered", pos, len(session), want, got)
		}
		sink.Close()
	}
}

// TestShutdown wants idle clients to receive 421, an open transaction to finish, new
// clients to be refused, and the next hop's reply to be awaited whatever the deadline.
func TestShutdown(t *testing.T) {
	release := make(chan struct{})
	inDot := make(chan struct{})
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(cmd smtptest.Command) string {
		if cmd.Line == "." {
			close(inDot)
			<-release
		}
		return ""
	}})
	g := newGate(t, gateOptions{nextHop: sink.Addr()})
	answer := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answer) // or the gate would wait for ever after a failure

	idle := dial(t, g.addr)
	idle.reply("220")
	open := dial(t, g.addr)
	open.reply("220")
	open.send("HELO client.example\r\n")
	open.reply("250")
	open.send("MAIL FROM:<a@example.com>\r\n")
	open.reply("250")
	stuck := dial(t, g.addr)
	stuck.toData("stuck@example.com")
	stuck.send("half a message")

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- g.server.Shutdown(ctx) }()

	idle.reply("421 4.3.2")
	idle.closed()
	if err := g.socket.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("new clients get in: %v", err)
	}
	open.send("RCPT TO:<b@example.net>\r\n")
	open.reply("250")
	open.send("DATA\r\n")
	open.reply("354")
	open.send("Subject: x\r\n\r\nlast\r\n.\r\n")
	<-inDot

	cancel() // no more patience: the stuck client is told to go
	stuck.reply("421 4.3.2")
	stuck.closed()
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned (%v) while the next hop had a message it has not answered for", err)
	default:
	}
	answer()
	open.reply("250")
	open.reply("421 4.3.2")
	open.closed()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown has cut off a message and returned %v", err)
	}
	if got := sink.Messages(); len(got) != 1 || !strings.HasSuffix(string(got[0].Body), "last\r\n") {
		t.Errorf("delivered: %v", got)
	}
}

// TestPipelinedRepliesInOnePacket counts the writes to a pipelining client.
func TestPipelinedRepliesInOnePacket(t *testing.T) {
	sink := smtptest.NewSink(t)
	var mu sync.Mutex
	writes := 0
	counting := &countingListener{onWrite: func() { mu.Lock(); writes++; mu.Unlock() }}
	g := newGateOn(t, counting, gateOptions{nextHop: sink.Addr(), checker: mustJudge(t, "envelope a@listed.example reject")})
	c := dial(t, g.addr)
	c.reply("220")
	c.send("EHLO client.example\r\n")
	c.reply("250")
	mu.Lock()
	before := writes
	mu.Unlock()
	c.send("MAIL FROM:<a@listed.example>\r\nRCPT TO:<b@example.net>\r\nRCPT TO:<c@example.net>\r\nRSET\r\nNOOP\r\n")
	for _, want := range []string{"250", "550", "550", "250", "250"} {
		c.reply(want)
	}
	mu.Lock()
	defer mu.Unlock()
	if writes != before+1 {
		t.Errorf("five replies came in %d writes, want 1", writes-before)
	}
}
