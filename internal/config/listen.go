package config

import (
	"net/netip"
	"time"

	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// Systemd as a listen address stands for the sockets that systemd passes to
// the process (socket activation, sd_listen_fds(3)).
const Systemd = "systemd"

// Listen is the [listen] table: an Endpoint, the defaults of every [[listener]],
// and a setting of the whole gate.
type Listen struct {
	Endpoint

	// ShutdownTimeout bounds the wait for open transactions when the gate stops.
	ShutdownTimeout time.Duration `toml:"shutdown_timeout" range:"0s,1h"`
}

// Listener is an Endpoint that the gate opens.
type Listener struct {
	// Name appears in the log. It is "listen" for [listen], else the name in the
	// [[listener]] table, which is unique, else the first address.
	Name string `toml:"name"`

	// NextHop is where the mail of the listener goes; nil: Config.NextHop. The file
	// has one address, an array of them, or a table with the keys of [next_hop],
	// which gives the others.
	NextHop *NextHop `toml:"next_hop"`

	Endpoint
}

// Endpoint says where clients connect, how they are served, and within which limits.
type Endpoint struct {
	// Addr has at least one element, except in a [listen] that is not opened:
	// "host:port" or Systemd. An empty host stands for every address of the
	// machine, port 0 for any free port. Except for port 0, no two listeners
	// have an address in common.
	Addr Addresses `toml:"addr"`

	wire.Rules // MaxMessageBytes is at least 1

	MaxRecipients int64 `toml:"max_recipients" range:"1,100000"`
	MaxHops       int64 `toml:"max_hops" range:"1,1000"` // Received fields

	// TLS is "starttls" if STARTTLS is offered, and "required" if it must come
	// before MAIL.
	TLS string `toml:"tls" oneof:"none,starttls,required,implicit"`

	// TLSCert and TLSKey are absolute paths of PEM files: each certificate, and
	// its key at the same place. A Listener has at least one of each unless TLS
	// is "none". Load does not open the files.
	TLSCert Files `toml:"tls_cert"`
	TLSKey  Files `toml:"tls_key"`

	// Auth says whether AUTH goes to the next hop, see Logins. With AuthRequire no
	// mail is accepted before a login. Unless it is "none", a Listener has TLS, and
	// its next hop is an SMTP server on this machine or with verified TLS.
	Auth string `toml:"auth" oneof:"none,pass,require"`

	ExemptAuthenticated bool     `toml:"exempt_authenticated"` // do not judge the mail of authenticated clients
	NameLookup          bool     `toml:"name_lookup"`          // look up clients in DNS if the next hop receives their names
	Lists               []string `toml:"lists"`                // names of the lists that apply; empty: all

	// Pregreet says what happens to clients that do not wait for the greeting.
	Pregreet string `toml:"pregreet" oneof:"reject,log"`

	// Tarpit delays the refusal of a listed sender, for at most TarpitMax clients
	// at a time.
	Tarpit    time.Duration `toml:"tarpit" range:"0s,5m"`
	TarpitMax int64         `toml:"tarpit_max" range:"1,10000"`

	// BareNewline applies to all clients but those in BareNewlineExcept, to which
	// the other value applies.
	BareNewline       string         `toml:"bare_newline" oneof:"reject,normalize"`
	BareNewlineExcept []netip.Prefix `toml:"bare_newline_except"`

	// The limits are those of the listener, of one client address, of one network (/24 and
	// /48), and of one login; 0: none. Connections are open ones, the others are per minute.
	MaxConnections Connections       `toml:"max_connections" range:"0,1000000"` // of the listener
	Client         limit.Limits      `prefix:"client_"`
	Network        limit.Limits      `prefix:"network_"`
	Login          limit.LoginLimits `prefix:"login_"`

	LimitsExempt []netip.Prefix `toml:"limits_exempt"` // clients without these limits and without a tarpit
}

// AuthRequire is the value of Auth that requires a login.
const AuthRequire = "require"

// Logins reports whether clients can log in.
func (e Endpoint) Logins() bool { return e.Auth != "none" }

// Connections is a number of open connections, 0 for no limit, or
// AutoConnections.
type Connections int64

// AutoConnections is "auto" in the file: as many connections as the process has
// file descriptors for, within reason.
const AutoConnections Connections = -1

// Number returns the number, in which auto takes the place of AutoConnections.
func (n Connections) Number(auto int) int {
	if n == AutoConnections {
		return auto
	}
	return int(n)
}
