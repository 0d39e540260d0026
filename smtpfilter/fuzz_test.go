package smtpfilter_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// recorder is a next hop in memory, fast enough for fuzzing. It keeps the bytes
// of each message that was committed.
type recorder struct{ messages []recorded }

type recorded struct {
	from string
	to   []string
	raw  []byte
}

// Extensions returns all extensions that the gate can pass on.
func (r *recorder) Extensions() wire.Extensions {
	return wire.Extensions{
		"8BITMIME": nil, "BINARYMIME": nil, "CHUNKING": nil, "DELIVERBY": nil, "DSN": nil, "ENHANCEDSTATUSCODES": nil,
		"LIMITS": {"RCPTMAX=50"}, "MT-PRIORITY": nil, "SIZE": {"60000"}, "SMTPUTF8": nil,
	}
}

func (r *recorder) Begin(e nexthop.Envelope) nexthop.Transaction {
	return &recording{r: r, m: recorded{from: e.From}}
}
func (r *recorder) String() string { return "recorder" }
func (r *recorder) Close() error   { return nil }

type recording struct {
	r *recorder
	m recorded
}

func (t *recording) Rcpt(_ context.Context, to string, _ []string) (wire.Reply, error) {
	t.m.to = append(t.m.to, to)
	return wire.NewReply(250, "ok"), nil
}
func (t *recording) Data(context.Context, nexthop.Format) (nexthop.Message, wire.Reply, error) {
	return t, wire.Reply{}, nil
}
func (t *recording) Write(p []byte) (int, error) {
	t.m.raw = append(t.m.raw, p...)
	return len(p), nil
}
func (t *recording) Commit(context.Context) (wire.Reply, error) {
	t.r.messages = append(t.r.messages, t.m)
	return wire.NewReply(250, "taken"), nil
}
func (t *recording) Flush() error { return nil }
func (t *recording) Abort()       {}

// oneConn is a listener with a single client.
type oneConn struct {
	conn chan net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// script is a client that has said everything already, in packets of a size.
type script struct {
	input  []byte
	size   int
	output bytes.Buffer
	closed chan struct{}
	once   sync.Once
}

func (c *script) Read(p []byte) (int, error) {
	if len(c.input) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.input)
	c.input = c.input[n:]
	return n, nil
}
func (c *script) Write(p []byte) (int, error)    { return c.output.Write(p) }
func (c *script) Close() error                   { c.once.Do(func() { close(c.closed) }); return nil }
func (*script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// proxySources returns the fuzz client's network if the input begins with a PROXY header.
func proxySources(input []byte) []netip.Prefix {
	if bytes.HasPrefix(input, []byte("PROXY ")) || bytes.HasPrefix(input, []byte("\r\n\r\n\x00")) {
		return []netip.Prefix{fuzzNetwork}
	}
	return nil
}

var fuzzNetwork = netip.MustParsePrefix("192.0.2.0/24")

// FuzzSession sends whole sessions of a trusted proxy to a next hop that offers
// everything. Each delivered message must be, byte for byte, a part of the input that ends
// in CRLF.CRLF and has only whole lines, or chunks of it. A listed sender's message is
// never delivered. Each reply is valid.
func FuzzSession(f *testing.F) {
	for _, d := range smtptest.Load(f) {
		var session strings.Builder
		for _, l := range d.Steps {
			switch {
			case l.Verb == "C" && l.Text != smtptest.Close:
				session.WriteString(l.Text + "\r\n")
			case l.Verb == "C!" && !strings.Contains(l.Text, ")*"):
				session.WriteString(smtptest.Expand(l.Text))
			}
		}
		f.Add([]byte(session.String()), 1<<16)
		f.Add([]byte(session.String()), 1)
	}
	f.Fuzz(func(t *testing.T, input []byte, size int) {
		hop := &recorder{}
		client := &script{input: input, size: max(1, size), closed: make(chan struct{})}
		l := &oneConn{make(chan net.Conn), make(chan struct{})}
		served := make(chan error, 1)
		server := smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"})
		listener, err := server.Listen(l, "", smtpfilter.Settings{
			Rules:   wire.Rules{MaxMessageBytes: 1 << 16, TrustedProxies: []netip.Prefix{fuzzNetwork}, ProxySources: proxySources(input)},
			Checker: mustJudge(t, "envelope spam@listed.example reject"),
			NextHop: hop,
			Policy:  smtpfilter.Policy{HeaderFields: []string{"From"}, MaxHops: 3},
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { served <- listener.Serve() }()
		l.conn <- client
		<-client.closed
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		checkRecorded(t, input, hop.messages)
		checkReplies(t, client.output.String())
	})
}

func checkRecorded(t *testing.T, input []byte, messages []recorded) {
	t.Helper()
	rest := input
	for _, m := range messages {
		_, body, ok := bytes.Cut(m.raw, []byte(" id "))
		if ok {
			_, body, _ = bytes.Cut(body, []byte("\r\n")) // the date
			_, body, ok = bytes.Cut(body, []byte("\r\n"))
		}
		if !ok {
			t.Fatalf("no trace fields in %q", m.raw)
		}
		body = bytes.TrimPrefix(body, []byte("X-Spamgate-Note: the message began with this white space:\r\n"))
		_, after, ok := bytes.Cut(rest, slices.Concat([]byte("\n"), body, []byte(".\r\n")))
		if !ok {
			after, ok = cutChunks(rest, body)
		}
		if !ok {
			t.Fatalf("%q went on, which is no message of %q", body, input)
		}
		rest = after
		if strings.EqualFold(m.from, "spam@listed.example") {
			for _, to := range m.to {
				if !strings.Contains(strings.ToLower(to), "postmaster") {
					t.Fatalf("a listed sender's mail went on to %s", to)
				}
			}
		}
	}
}

// cutChunks looks for a message in input that was sent with BDAT, and returns
// what follows its last chunk.
func cutChunks(input, message []byte) (after []byte, ok bool) {
	command := regexp.MustCompile(`(?i)\n *BDAT +([0-9]{1,18})( +LAST)? *\r\n`)
	for _, positions := range command.FindAllSubmatchIndex(input, -1) {
		size, _ := strconv.Atoi(string(input[positions[2]:positions[3]]))
		chunk := input[positions[1]:]
		if size > len(chunk) || !bytes.HasPrefix(message, chunk[:size]) {
			continue
		}
		if last := positions[4] >= 0; last {
			if size == len(message) {
				return chunk[size:], true
			}
			continue
		}
		// A chunk may end in what looks like the end of a line.
		if after, ok := cutChunks(slices.Concat([]byte("\n"), chunk[size:]), message[size:]); ok {
			return after, true
		}
	}
	return nil, false
}

func checkReplies(t *testing.T, output string) {
	t.Helper()
	for output != "" {
		var r wire.Reply
		for last := false; !last; {
			line, rest, ok := strings.Cut(output, "\n")
			if !ok {
				t.Fatalf("half a reply: %q", output)
			}
			var err error
			if last, err = r.AppendLine([]byte(line + "\n")); err != nil || !strings.HasSuffix(line, "\r") {
				t.Fatalf("%q: %v", line, err)
			}
			output = rest
		}
	}
}
