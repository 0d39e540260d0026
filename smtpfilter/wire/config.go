package wire

import (
	"crypto/tls"
	"net/netip"
	"time"
)

// Config holds what all connections of a listener share.
type Config struct {
	// Hostname is what the gate calls itself in its replies.
	Hostname string

	// MaxMessageBytes is the largest message taken, in bytes as RFC 1870
	// counts them: CRLFs included, dot-stuffing and the final dot not. It is
	// announced with SIZE. 0 means no limit.
	MaxMessageBytes int64

	// CommandTimeout is how long a client may be silent between commands, 0
	// for the 5 minutes of RFC 5321, section 4.5.3.2.7.
	CommandTimeout time.Duration

	// DataTimeout is how long a client may be silent inside a message, 0 for
	// the 3 minutes of RFC 5321, section 4.5.3.2.5.
	DataTimeout time.Duration

	// WriteTimeout is how long a client may leave a reply unread, 0 for
	// 1 minute.
	WriteTimeout time.Duration

	// MaxErrors is how many lines that are no commands, or malformed ones, a
	// client may send before it is told 421, 0 for 10.
	MaxErrors int

	// MaxRefusals is how many commands of a client may be refused, recipients
	// above all, before it is told 421, 0 for 100. It is also how many commands
	// may come that bring no message nearer, such as NOOP and RSET, until one is
	// accepted.
	MaxRefusals int

	// Extensions, where it is not nil, gives what the next hop offers now. It is
	// asked at each EHLO and HELO, and what both sides can do holds until the
	// next. Nil means 8BITMIME, ENHANCEDSTATUSCODES and SIZE.
	Extensions func(c *Conn) Extensions

	// Path, where it is not nil, gives the ids of the gates that mail passes from
	// here on, this one first. They are told in the reply to EHLO, so that a gate finds
	// out that its next hop leads back to itself.
	Path func() []string

	// MaxRecipients is announced with LIMITS (RFC 9422) where the next hop has
	// that, 0 for no limit. Whoever counts the recipients enforces it.
	MaxRecipients int

	// TLS makes the gate a TLS server, as TLSMode says; nil means that there is
	// no TLS. The certificate is best given by GetCertificate, so that it can
	// change.
	TLS     *tls.Config
	TLSMode TLSMode

	// Auth, where it is not nil, carries out a client's AUTH command, which is
	// offered under TLS alone, with the mechanisms that the next hop has.
	// Args is what followed "AUTH ", validated. Ask sends the client a 334
	// and returns the line that it answers with: base64, or "*" where the client
	// gives up. After an error of ask the client is told why, whatever Auth
	// returns. The Reply is the outcome, a 235 makes the client an authenticated
	// one; all others but 4xx and 5xx become 454.
	Auth func(c *Conn, args string, ask func(challenge Reply) (line string, err error)) Reply

	// TrustedProxies may use XCLIENT and XFORWARD.
	TrustedProxies []netip.Prefix

	// ProxySources must begin with a header of the PROXY protocol, version 1
	// or 2. All others must not.
	ProxySources []netip.Prefix

	// GreetingDelay is how long the greeting is held back, to see who cannot
	// wait for it.
	GreetingDelay time.Duration

	// RejectPregreet refuses clients that talk before the greeting, or pipeline
	// where RFC 2920 forbids it. Otherwise Noticed alone hears of them.
	RejectPregreet bool

	// Noticed, where it is not nil, is called for what a client should not
	// have done, refused or not: "talks before the greeting", "pipelines behind
	// EHLO", and for each message whose newlines were normalised.
	Noticed func(c *Conn, what string)

	// Normalize, where it is not nil, says for which clients a bare LF in a
	// message becomes CRLF and a bare CR a space, in place of a refusal. A NUL
	// is refused in any case.
	Normalize func(client netip.Addr) bool

	// MinDataRate is how many bytes a second a client must send, on average over
	// a message and behind the first minute, 0 for any number.
	MinDataRate int64

	// Connected, where it is not nil, is asked before the greeting, and again
	// when XCLIENT has changed the client's address. A reply that is not zero
	// refuses the client, and ends the connection. Where that would have begun
	// with TLS, it is asked before, and a refusal closes without the reply.
	Connected func(c *Conn) Reply

	// Erred, where it is not nil, is called for each line that is no command
	// or a malformed one. A reply that is not zero takes the place of what would
	// be said, and ends the connection.
	Erred func(c *Conn) Reply

	// AcceptFailed, where it is not nil, is called when a connection could not
	// be accepted and will be tried again: there are no file descriptors left,
	// most often. It is called once a second at most, after the first few.
	AcceptFailed func(error)

	// Refused, where it is not nil, is called for each MAIL and RCPT that is
	// refused before the session sees it, with the line as it came.
	Refused func(c *Conn, line string, r Reply)

	// Closed, where it is not nil, is called once for each connection, when it
	// is closed.
	Closed func(*Conn)
}

// TLSMode says when a client speaks TLS.
type TLSMode uint8

// The modes.
const (
	TLSOffered  TLSMode = iota // STARTTLS is offered
	TLSRequired                // STARTTLS must come before MAIL and AUTH
	TLSImplicit                // the connection begins with it (RFC 8314)
)

func (c Config) withDefaults() Config {
	c.CommandTimeout = orDefault(c.CommandTimeout, 5*time.Minute)
	c.DataTimeout = orDefault(c.DataTimeout, 3*time.Minute)
	c.WriteTimeout = orDefault(c.WriteTimeout, time.Minute)
	if c.MaxErrors == 0 {
		c.MaxErrors = 10
	}
	if c.MaxRefusals == 0 {
		c.MaxRefusals = 100
	}
	if c.TLS != nil {
		c.TLS = modernTLS(c.TLS)
	}
	return c
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
