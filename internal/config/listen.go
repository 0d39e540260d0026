package config

import (
	"net/netip"
	"time"
)

// Systemd as a listen address stands for the sockets that systemd passes to
// the process (socket activation, sd_listen_fds(3)).
const Systemd = "systemd"

// Listen is the [listen] table: an Endpoint of its own, what every [[listener]]
// starts from, and what the whole gate has once.
type Listen struct {
	Endpoint

	// ShutdownTimeout bounds the wait for open transactions when the gate
	// stops; 0 to an hour.
	ShutdownTimeout time.Duration `toml:"shutdown_timeout"`
}

// Listener is an Endpoint that is opened.
type Listener struct {
	// Name is for the log: "listen" for the table of that name, else what the
	// [[listener]] says or, where it says nothing, its first address. Names that
	// were given are unique.
	Name string `toml:"name"`

	Endpoint
}

// Endpoint says where clients are served, how, and within which limits.
type Endpoint struct {
	// Addr has at least one element, except in a [listen] that is no listener:
	// "host:port" or Systemd. An empty host is every address of the machine,
	// port 0 any free port. No two listeners have an address in common, apart
	// from those with port 0.
	Addr Addresses `toml:"addr"`

	// MaxMessageBytes bounds a message; at least 1.
	MaxMessageBytes int64 `toml:"max_message_bytes"`

	// MaxRecipients bounds the recipients of a message; 1 to 100,000.
	MaxRecipients int64 `toml:"max_recipients"`

	// TLS is "none", "starttls" (offered), "required" (STARTTLS before MAIL) or
	// "implicit".
	TLS string `toml:"tls"`

	// TLSCert and TLSKey are absolute paths of PEM files. A Listener has both
	// where TLS is not "none". Whether the files are there is not checked.
	TLSCert string `toml:"tls_cert"`
	TLSKey  string `toml:"tls_key"`

	// Auth is "none" or "pass": AUTH goes to the next hop. In a Listener "pass"
	// comes with TLS and an SMTP next hop only, which is on this machine or has
	// verified TLS.
	Auth string `toml:"auth"`

	// ExemptAuthenticated leaves the mail of authenticated clients unjudged.
	ExemptAuthenticated bool `toml:"exempt_authenticated"`

	// NameLookup has the names of clients looked up in DNS for a next hop that is
	// told who they are.
	NameLookup bool `toml:"name_lookup"`

	// Lists names the lists that count here; none: all.
	Lists []string `toml:"lists"`

	// TrustedProxies may use XCLIENT and XFORWARD. This and every other prefix
	// is masked and never IPv4-mapped IPv6.
	TrustedProxies []netip.Prefix `toml:"trusted_proxies"`

	// ProxyProtocol are the sources whose connections begin with a header of
	// the PROXY protocol.
	ProxyProtocol []netip.Prefix `toml:"proxy_protocol"`

	// GreetingDelay holds the greeting back; 0 to 1 min.
	GreetingDelay time.Duration `toml:"greeting_delay"`

	// Pregreet is "reject" or "log".
	Pregreet string `toml:"pregreet"`

	// Tarpit is how long a listed sender's refusal is held back; 0 to 5 min.
	// TarpitMax is how many are at a time; 1 to 10,000.
	Tarpit    time.Duration `toml:"tarpit"`
	TarpitMax int64         `toml:"tarpit_max"`

	// BareNewline is "reject" or "normalize"; for BareNewlineExcept it is the
	// other one.
	BareNewline       string         `toml:"bare_newline"`
	BareNewlineExcept []netip.Prefix `toml:"bare_newline_except"`

	// MinDataRate is in bytes a second, up to 1,000,000; 0: any.
	MinDataRate int64 `toml:"min_data_rate"`

	// MaxHops bounds the Received fields; 1 to 1000.
	MaxHops int64 `toml:"max_hops"`

	// MaxErrors and MaxRefusals bound the lines that are no commands, and the
	// commands that are refused, or bring no message nearer, of a connection; 1
	// to 100,000.
	MaxErrors   int64 `toml:"max_errors"`
	MaxRefusals int64 `toml:"max_refusals"`

	// CommandTimeout and DataTimeout are how long a client may be silent between
	// commands and inside a message; 1 s to 1 h.
	CommandTimeout time.Duration `toml:"command_timeout"`
	DataTimeout    time.Duration `toml:"data_timeout"`

	Limits

	// LimitsExempt are clients without Limits and without a tarpit.
	LimitsExempt []netip.Prefix `toml:"limits_exempt"`
}

// Limits are those of the listener, of one client address, and of one network
// (/24 and /48), each up to 1,000,000; 0: none. Connections are those open at a
// time, all others are a minute.
type Limits struct {
	MaxConnections              Connections `toml:"max_connections"` // of the listener
	ClientConnections           int64       `toml:"client_connections"`
	ClientConnectionsPerMinute  int64       `toml:"client_connections_per_minute"`
	ClientMessagesPerMinute     int64       `toml:"client_messages_per_minute"`
	ClientRecipientsPerMinute   int64       `toml:"client_recipients_per_minute"`
	ClientErrorsPerMinute       int64       `toml:"client_errors_per_minute"`
	NetworkConnections          int64       `toml:"network_connections"`
	NetworkConnectionsPerMinute int64       `toml:"network_connections_per_minute"`
	NetworkMessagesPerMinute    int64       `toml:"network_messages_per_minute"`
	NetworkRecipientsPerMinute  int64       `toml:"network_recipients_per_minute"`
	NetworkErrorsPerMinute      int64       `toml:"network_errors_per_minute"`
}

// Connections is a number of open connections, 0 for no limit, or
// AutoConnections.
type Connections int64

// AutoConnections stands for as many connections as the process has file
// descriptors for, within reason. In the file it is "auto".
const AutoConnections Connections = -1
