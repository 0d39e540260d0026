package smtptest

import (
	"crypto/sha256"
	"maps"
	"net"
	"slices"
	"testing"
)

// DefaultExtensions are the EHLO lines of a Sink whose Config names none: about
// those of Postfix.
var DefaultExtensions = []string{
	"PIPELINING",
	"SIZE 52428800",
	"8BITMIME",
	"SMTPUTF8",
	"DSN",
	"ENHANCEDSTATUSCODES",
	"XFORWARD NAME ADDR PORT PROTO HELO IDENT SOURCE",
}

// Config configures a Sink. The zero Config accepts everything.
type Config struct {
	// Extensions are the EHLO lines after the first. Nil means
	// DefaultExtensions; empty and not nil means none. Clients can use
	// STARTTLS, XCLIENT and AUTH whether offered or not. AUTH and the response
	// to its challenge are answered with 235 unless Replies say otherwise.
	Extensions []string

	// OneXCLIENT accepts one XCLIENT on a connection, as Postfix does if the
	// new client address may not use XCLIENT.
	OneXCLIENT bool

	// LMTP makes it an LMTP server (RFC 2033), which answers the end of a
	// message for each recipient.
	LMTP bool

	// Unix makes it listen on a Unix domain socket, whose path is Addr.
	Unix bool

	// Replies are canned replies. The key is a command line exactly as
	// received ("RCPT TO:<b@example.net>"), or a verb: "MAIL", "RCPT", …,
	// "GREETING" for the greeting, "." for the end of a message (for the last
	// chunk, too), ". RCPT TO:<b@example.net>" for the reply of LMTP for a
	// recipient. A line takes precedence over its verb.
	//
	// A reply is its lines without CRLF, joined by "\n", each with its code
	// ("550-5.1.1 no\n550 5.1.1 such user"). Its last line may be
	// Close, Reset or Silence. A reply of 421 closes the connection.
	Replies map[string]string

	// Answer, if not nil, returns a reply in the same form, or "" to leave
	// the command to Replies. Connections call it concurrently.
	Answer func(Command) string

	// Body, if not nil, disturbs every message.
	Body *BodyFault

	// DropBodies keeps the checksum and size of a message, not its bytes.
	DropBodies bool
}

// BodyFault is a reply in the middle of a message.
type BodyFault struct {
	// After is the number of body bytes, dot-stuffing included, that the Sink
	// reads first. It reads the line that reaches After to its end.
	After int64

	// Reply has the form of Config.Replies. Without a directive the Sink
	// reads on to the end of the message and sends no reply there.
	Reply string
}

// Command is one command line as it was received.
type Command struct {
	Conn   int    // number of the connection, from 1
	Flight int    // number of the network read that returned its end, from 1 on each connection
	Line   string // without the CRLF
}

// Verb returns the first word of the line in upper case.
func (c Command) Verb() string { return verb(c.Line) }

// Message is a message that has begun: DATA was answered with 354, or a chunk
// came.
type Message struct {
	Conn     int      // number of the connection, from 1
	Hello    string   // the EHLO or HELO line
	XCLIENT  string   // the connection's last XCLIENT line, or ""
	Commands []string // the transaction's command lines as received, from XFORWARD or MAIL to DATA or BDAT
	Mail     string   // the accepted MAIL line
	Rcpts    []string // the accepted RCPT lines
	Chunks   []int64  // sizes of its chunks, if any
	Raw      []byte   // the bytes between 354 and the final dot, or of all chunks, as received; nil with DropBodies
	Body     []byte   // Raw without the dot-stuffing; nil with DropBodies
	Size     int64    // length of Body
	Sum      [sha256.Size]byte
	Complete bool     // the final dot, or the whole last chunk, arrived
	Reply    string   // to the end; the first one over LMTP
	Replies  []string // to the end; over LMTP there may be several
}

// Delivered reports whether the Sink accepted the whole message for at least one
// recipient. If the reply was cut off or withheld, it counts as accepted.
func (m Message) Delivered() bool {
	accepted := func(reply string) bool { return reply[0] != '4' && reply[0] != '5' }
	return m.Complete && (len(m.Replies) == 0 || slices.ContainsFunc(m.Replies, accepted))
}

// Sink is an SMTP server that records every byte that it receives.
type Sink struct {
	server
	config Config

	// Guarded by server.mu.
	replies    map[string]string
	messages   []Message
	commands   []Command
	violations []string
}

// NewSink starts a Sink on a free port of 127.0.0.1, with at most one Config.
func NewSink(t testing.TB, config ...Config) *Sink {
	t.Helper()
	s := &Sink{replies: make(map[string]string)}
	if len(config) > 1 {
		t.Fatalf("smtptest.NewSink: %d configs", len(config))
	}
	if len(config) == 1 {
		s.config = config[0]
	}
	if s.config.Extensions == nil {
		s.config.Extensions = DefaultExtensions
	}
	maps.Copy(s.replies, s.config.Replies)
	s.start(t, s.config.Unix, func(n int, c net.Conn) { newSession(s, n, c).run() })
	return s
}

// SetReply sets a canned reply, as in Config.Replies. An empty reply removes it.
func (s *Sink) SetReply(command, reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reply == "" {
		delete(s.replies, command)
		return
	}
	s.replies[command] = reply
}

// Messages returns the delivered messages, in the order of their ends.
func (s *Sink) Messages() []Message {
	return s.filter(Message.Delivered)
}

// Undelivered returns the messages that were cut off, or refused at their end.
func (s *Sink) Undelivered() []Message {
	return s.filter(func(m Message) bool { return !m.Delivered() })
}

func (s *Sink) filter(keep func(Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.messages), func(m Message) bool { return !keep(m) })
}

// WaitMessages waits for at least n delivered messages, and returns them.
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

// Commands returns the command lines of all connections, in the order in which
// the Sink read them. Body bytes that it executed as a command are among them.
func (s *Sink) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Violations describes what no client may send: a command line that does not end
// in CRLF, holds NUL or a bare CR, or is unknown.
func (s *Sink) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}
