package wire

import (
	"cmp"
	"crypto/tls"
	"net/netip"
	"time"
)

// Rules are what an admin sets for the clients of a listener. The tags are those of
// spamgate's configuration: its keys, and their ranges there.
type Rules struct {
	// MaxMessageBytes is the largest message accepted, in bytes as RFC 1870
	// counts them: CRLFs included, dot-stuffing and the final dot not. EHLO
	// announces it with SIZE. 0 means no limit.
	MaxMessageBytes int64 `toml:"max_message_bytes"`

	// MinDataRate is how many bytes a second a client must send, on average over
	// a message and after the first minute, 0 for any number.
	MinDataRate int64 `toml:"min_data_rate" range:"0,1000000"`

	// TrustedProxies may use XCLIENT and XFORWARD.
	TrustedProxies []netip.Prefix `toml:"trusted_proxies"`

	// ProxySources must begin with a PROXY header, version 1 or 2. All others
	// must not.
	ProxySources []netip.Prefix `toml:"proxy_protocol"`

	// GreetingDelay delays the greeting, to find clients that do not wait for
	// it.
	GreetingDelay time.Duration `toml:"greeting_delay" range:"0s,1m"`

	// MaxErrors is how many invalid commands a client may send before it gets
	// 421, 0 for 10.
	MaxErrors int `toml:"max_errors" range:"1,100000"`

	// MaxRefusals is how many refused commands, above all recipients, a client
	// may send before it gets 421, 0 for 100. It also limits the commands that do
	// not lead to a message, such as NOOP and RSET, until one is accepted.
	MaxRefusals int `toml:"max_refusals" range:"1,100000"`

	// CommandTimeout is how long a client may be silent between commands, 0 for
	// the 5 minutes of RFC 5321, section 4.5.3.2.7.
	CommandTimeout time.Duration `toml:"command_timeout" range:"1s,1h"`

	// DataTimeout is how long a client may be silent inside a message, 0 for the
	// 3 minutes of RFC 5321, section 4.5.3.2.5.
	DataTimeout time.Duration `toml:"data_timeout" range:"1s,1h"`

	// WriteTimeout is how long a client may leave a reply unread, 0 for 1
	// minute.
	WriteTimeout time.Duration `toml:"-"`
}

// Negative returns the names of the fields whose values are negative, and so invalid.
func (r *Rules) Negative() (names []string) {
	for name, value := range map[string]int64{
		"MaxMessageBytes": r.MaxMessageBytes, "MinDataRate": r.MinDataRate, "GreetingDelay": int64(r.GreetingDelay),
		"MaxErrors": int64(r.MaxErrors), "MaxRefusals": int64(r.MaxRefusals),
		"CommandTimeout": int64(r.CommandTimeout), "DataTimeout": int64(r.DataTimeout), "WriteTimeout": int64(r.WriteTimeout),
	} {
		if value < 0 {
			names = append(names, name)
		}
	}
	return names
}

// Config is the configuration of all connections of a listener.
type Config struct {
	Rules

	// Hostname is the gate's name in its replies.
	Hostname string

	// Extensions, if not nil, returns what the next hop offers now. It is called
	// at each EHLO and HELO, and holds until the next. Nil means 8BITMIME,
	// ENHANCEDSTATUSCODES and SIZE.
	Extensions func(c *Conn) Extensions

	// Path, if not nil, returns the ids of the gates that mail passes from here
	// on, this one first. EHLO lists them, so that a gate notices if its next hop
	// leads back to it.
	Path func() []string

	// MaxRecipients is announced with LIMITS (RFC 9422) if the next hop offers
	// that, 0 for no limit. The session must enforce it.
	MaxRecipients int

	// TLS configures the gate's TLS, used as in TLSMode; nil is no TLS. With
	// GetCertificate the certificate can change.
	TLS     *tls.Config
	TLSMode TLSMode

	// Auth, if not nil, carries out a client's AUTH command, which is offered
	// only inside TLS, with the next hop's mechanisms. Args is the validated text
	// after "AUTH ". Ask sends the client a 334 and returns its answer: base64,
	// or "*" if the client gives up. After an error of ask the client gets the
	// reason, whatever Auth returns. A Reply of 235 authenticates the client;
	// other replies than 4xx and 5xx become 454.
	Auth func(c *Conn, args string, ask func(challenge Reply) (line string, err error)) Reply

	// AuthRequired refuses mail from a client that is not Authenticated, and whose
	// login no trusted proxy has named with XCLIENT.
	AuthRequired bool

	// RejectPregreet refuses clients that talk before the greeting, or pipeline
	// against RFC 2920. Otherwise only Noticed is called.
	RejectPregreet bool

	// Noticed, if not nil, is called for what a client should not have done,
	// refused or not: "talks before the greeting", "pipelines after EHLO", and
	// for each message with normalized newlines.
	Noticed func(c *Conn, what string)

	// Normalize, if not nil, returns for which clients a bare LF in a message
	// becomes CRLF and a bare CR a space, instead of a refusal. A NUL is always
	// refused.
	Normalize func(client netip.Addr) bool

	// Connected, if not nil, is called before the greeting, and again after
	// XCLIENT has changed the client. A reply that is not zero refuses the client
	// and ends the connection. With implicit TLS it is called before TLS, and a
	// refusal closes the connection without the reply.
	Connected func(c *Conn) Reply

	// Erred, if not nil, is called for each invalid command. A reply that is not
	// zero replaces the gate's reply and ends the connection.
	Erred func(c *Conn) Reply

	// AcceptFailed, if not nil, is called after a temporary error of accept,
	// mostly a lack of file descriptors. After the first few calls it is called
	// once a second at most.
	AcceptFailed func(error)

	// Refused, if not nil, is called for each MAIL and RCPT that is refused
	// before the session sees it, with the line as received.
	Refused func(c *Conn, line string, r Reply)

	// Closed, if not nil, is called once for each connection after it is closed.
	Closed func(*Conn)
}

// TLSMode says when a client uses TLS.
type TLSMode uint8

// The modes.
const (
	TLSOffered  TLSMode = iota // STARTTLS is offered
	TLSRequired                // STARTTLS must come before MAIL and AUTH
	TLSImplicit                // the connection begins with TLS (RFC 8314)
)

func (c Config) withDefaults() Config {
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 5*time.Minute)
	c.DataTimeout = cmp.Or(c.DataTimeout, 3*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, time.Minute)
	c.MaxErrors = cmp.Or(c.MaxErrors, 10)
	c.MaxRefusals = cmp.Or(c.MaxRefusals, 100)
	if c.TLS != nil {
		c.TLS = modernTLS(c.TLS)
	}
	return c
}
