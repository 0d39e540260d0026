package config

import (
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Door is the table of a door: a socket where others ask for a decision. Its kind says which
// of the keys it has.
type Door struct {
	Table string `toml:"-"` // TablePolicyService, TableMilter or TableDNSServer
	Index int    `toml:"-"` // of the table among those of its kind

	// Name appears in the log and in metrics: the name in the table, else the
	// address. No two doors and listeners have a name in common.
	Name string `toml:"name"`

	// Addr is "host:port", for DNS over UDP and TCP, or "unix:" with the absolute path of
	// a socket.
	Addr string `toml:"addr"`

	SocketMode string `toml:"socket_mode" only:"policy_service,milter"` // three or four octal digits; see Mode

	// Zone holds the domains of the lists, and HashedZone the hashes of their
	// addresses: domain names in lower case without a final dot. At least one is
	// not empty, and none is the other or below it.
	Zone       string `toml:"zone" only:"dns_server"`
	HashedZone string `toml:"hashed_zone" only:"dns_server"`

	Lists []string `toml:"lists"` // names of the lists that apply; empty: all

	ExemptAuthenticated bool `toml:"exempt_authenticated" only:"policy_service,milter"` // do not judge the mail of authenticated clients

	TTL time.Duration `toml:"ttl" range:"1s,24h" only:"dns_server"` // whole seconds

	AllowClients []netip.Prefix `toml:"allow_clients" only:"dns_server"` // masked, never IPv4-mapped IPv6, at least one

	// NetworkAnswersPerSecond bounds the answers over UDP to the clients of a
	// network (/24, /48) together; 0: any number. Clients on this machine have no
	// limit.
	NetworkAnswersPerSecond int64 `toml:"network_answers_per_second" range:"0,1000000" only:"dns_server"`

	MaxConnections Connections `toml:"max_connections" range:"0,1000000"` // for DNS, over TCP; 0: any number
}

// The tables of the doors.
const (
	TablePolicyService = "policy_service" // Postfix's delegation protocol
	TableMilter        = "milter"         // the milter protocol of Postfix and Sendmail
	TableDNSServer     = "dns_server"     // the lists as a DNS blocklist
)

// doorKinds says what the kinds of doors have of their own.
var doorKinds = map[string]struct {
	example string // of an address
	empty   Door   // the values of an empty table; an address has no default

	// Postfix decides the keys of client in the braces of its parameter.
	parameter string
	client    []string

	check func(*document, *Door)
}{
	TablePolicyService: {
		example:   `"127.0.0.1:10040" or "unix:/run/spamgate/policy.sock"`,
		empty:     Door{SocketMode: "0666", MaxConnections: AutoConnections},
		parameter: "check_policy_service",
		client:    []string{"timeout", "default_action", "max_idle", "max_ttl", "request_limit", "retry_delay", "try_limit", "policy_context"},
		check:     (*document).policyService,
	},
	TableMilter: {
		example:   `"127.0.0.1:10041" or "unix:/run/spamgate/milter.sock"`,
		empty:     Door{SocketMode: "0666", MaxConnections: AutoConnections},
		parameter: "smtpd_milters",
		client:    []string{"default_action", "command_timeout", "connect_timeout", "content_timeout", "protocol"},
		check:     func(*document, *Door) {},
	},
	TableDNSServer: {
		example: `"127.0.0.1:10053"`,
		empty: Door{
			TTL:                     time.Minute,
			AllowClients:            []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			NetworkAnswersPerSecond: 1000,
			MaxConnections:          AutoConnections,
		},
		check: (*document).dnsServer,
	},
}

// isDoor reports whether a table is that of a door.
func isDoor(table string) bool {
	_, ok := doorKinds[table]
	return ok
}

// OnlyDNS reports whether the gate sees no mail: it has neither a listener nor a door but
// DNS servers.
func (c *Config) OnlyDNS() bool {
	return len(c.Listeners) == 0 && !slices.ContainsFunc(c.Doors, func(d Door) bool { return d.Table != TableDNSServer })
}

// Path returns the path of the door's table, and Key that of a key there, for
// [Config.Fault].
func (d Door) Path() string          { return element(d.Table, d.Index) }
func (d Door) Key(key string) string { return d.Path() + "." + key }

// Mode returns the permissions of the door's socket.
func (d Door) Mode() fs.FileMode { return socketMode(d.SocketMode) }

// socketMode returns the permissions that octal digits stand for.
func socketMode(digits string) fs.FileMode {
	mode, _ := strconv.ParseUint(digits, 8, 9) // Load has checked it
	return fs.FileMode(mode)
}

// schemeUnix begins the address of a unix socket.
const schemeUnix = "unix:"

// Unix returns the path of the door's socket, if it is a unix socket.
func (d Door) Unix() (path string, ok bool) { return strings.CutPrefix(d.Addr, schemeUnix) }

// resolve makes the path of the door's unix socket absolute, also in its name if that is
// the address.
func (d *Door) resolve(abs func(string) string) {
	path, ok := d.Unix()
	if !ok {
		return
	}
	full := schemeUnix + abs(path)
	if d.Name == d.Addr {
		d.Name = full
	}
	d.Addr = full
}
