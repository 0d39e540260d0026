package nexthoptest

import (
	"crypto/sha256"
	"net"
	"slices"
	"testing"
)

// DefaultExtensions are the EHLO keywords of a Sink whose Config names none:
// about what Postfix offers.
var DefaultExtensions = []string{
	"PIPELINING",
	"SIZE 52428800",
	"8BITMIME",
	"SMTPUTF8",
	"DSN",
	"ENHANCEDSTATUSCODES",
	"XFORWARD NAME ADDR PORT PROTO HELO IDENT SOURCE",
}

// Config says how a Sink behaves. The zero Config is a server that takes
// everything.
type Config struct {
	// Extensions are the EHLO lines after the first. Nil means
	// DefaultExtensions; empty and not nil means none. STARTTLS, XCLIENT and
	// AUTH can be used whether offered or not; AUTH, and what answers a
	// challenge of it, is answered with 235 unless Replies have something else.
	Extensions []string

	// OneXCLIENT makes a connection take one XCLIENT, as Postfix does for a
	// client that may not say XCLIENT itself.
	OneXCLIENT bool

	// LMTP makes it an LMTP server (RFC 2033), which answers the end of a
	// message once for each recipient.
	LMTP bool

	// Unix makes it listen on a Unix domain socket, whose path is Addr.
	Unix bool

	// Replies are canned replies. The key is a command line exactly as it
	// is received ("RCPT TO:<b@example.net>"), or a verb: "MAIL", "RCPT",
	// …, "GREETING" for the first thing said, "." for the end of a message
	// (for the last chunk, too), ". RCPT TO:<b@example.net>" for what LMTP
	// answers there for a recipient. The line goes before the verb.
	//
	// A reply is its lines without CRLF, joined by "\n", each with its code
	// ("550-5.1.1 no\n550 5.1.1 such user"). Its last line may be Cut,
	// Reset or Silence. A reply of 421 closes the connection.
	Replies map[string]string

	// Answer, where it is not nil, is asked before Replies, and answers in
	// the same form; "" leaves the command to Replies. Connections ask at
	// the same time.
	Answer func(Command) string

	// Body, where it is not nil, disturbs every message.
	Body *BodyFault

	// DropBodies keeps the checksum and size of a message, not its bytes.
	DropBodies bool
}

// BodyFault is something that happens in the middle of a message.
type BodyFault struct {
	// After is the number of body bytes, dot-stuffing included, that are
	// read before it happens; the line that reaches it is read to its end.
	After int64

	// Reply is sent then, in the form of Config.Replies. Without a
	// directive the Sink reads on to the end of the message and answers
	// nothing there.
	Reply string
}

// Command is one command line as it was received.
type Command struct {
	Conn   int    // number of the connection, from 1
	Flight int    // number of the network read that brought its end, from 1 on each connection
	Line   string // without the CRLF
}

// Verb is the first word of the line in upper case.
func (c Command) Verb() string { return verb(c.Line) }

// Message is one message whose DATA was answered with 354, or whose first chunk
// came.
type Message struct {
	Conn     int      // number of the connection, from 1
	Hello    string   // the EHLO or HELO line
	XCLIENT  string   // the connection's last XCLIENT line, or ""
	Commands []string // the transaction's command lines as received, from XFORWARD or MAIL to DATA or BDAT
	Mail     string   // the accepted MAIL line
	Rcpts    []string // the accepted RCPT lines
	Chunks   []int64  // sizes of the chunks, where it came in chunks
	Raw      []byte   // the bytes between 354 and the final dot, or of all chunks, as received; nil with DropBodies
	Body     []byte   // Raw without the dot-stuffing; nil with DropBodies
	Size     int64    // length of Body
	Sum      [sha256.Size]byte
	Complete bool     // the final dot, or the whole last chunk, arrived
	Reply    string   // what the end was answered with
	Replies  []string // all of these answers: over LMTP there may be several
}

// Delivered reports whether the Sink took the message over: its end came, and was
// not answered with a refusal, for one recipient at least. Where the answer was
// cut off or withheld the message counts as delivered.
func (m Message) Delivered() bool {
	taken := func(reply string) bool { return reply[0] != '4' && reply[0] != '5' }
	return m.Complete && (len(m.Replies) == 0 || slices.ContainsFunc(m.Replies, taken))
}

// Sink is an SMTP server that records byte for byte what it is sent.
type Sink struct {
	server
	config Config

	// Guarded by server.mu.
	replies    map[string]string
	messages   []Message
	commands   []Command
	violations []string
}

// NewSink starts a Sink on a free port of 127.0.0.1. At most one Config may be
// given; without one the zero Config counts.
func NewSink(t testing.TB, config ...Config) *Sink {
	t.Helper()
	s := &Sink{replies: make(map[string]string)}
	if len(config) > 1 {
		t.Fatalf("nexthoptest.NewSink: %d configs", len(config))
	}
	if len(config) == 1 {
		s.config = config[0]
	}
	if s.config.Extensions == nil {
		s.config.Extensions = DefaultExtensions
	}
	for command, reply := range s.config.Replies {
		s.replies[command] = reply
	}
	s.unix = s.config.Unix
	s.start(t, func(n int, c net.Conn) { newSession(s, n, c).run() })
	return s
}

// SetReply sets a canned reply, as in Config.Replies, from now on. An empty
// reply gives the command back to the Sink.
func (s *Sink) SetReply(command, reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reply == "" {
		delete(s.replies, command)
		return
	}
	s.replies[command] = reply
}

// Messages are the delivered messages, in the order of their ends.
func (s *Sink) Messages() []Message {
	return s.filter(Message.Delivered)
}

// Undelivered are the messages that were begun and never delivered: cut off
// before the final dot, or refused there.
func (s *Sink) Undelivered() []Message {
	return s.filter(func(m Message) bool { return !m.Delivered() })
}

func (s *Sink) filter(keep func(Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []Message
	for _, m := range s.messages {
		if keep(m) {
			kept = append(kept, m)
		}
	}
	return kept
}

// WaitMessages waits until at least n messages are delivered, and returns
// them.
func (s *Sink) WaitMessages(n int) []Message {
	s.t.Helper()
	s.wait("messages", func() bool {
		delivered := 0
		for _, m := range s.messages {
			if m.Delivered() {
				delivered++
			}
		}
		return delivered >= n
	})
	return s.Messages()
}

// Commands are all command lines of all connections, in the order in which
// they were read. A body byte that was executed as a command shows here.
func (s *Sink) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Violations says what was received that no client may send: a command line
// that does not end in CRLF, holds NUL or a bare CR, or is unknown.
func (s *Sink) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}
