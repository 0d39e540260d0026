package config

import (
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PolicyService is a [[policy_service]] table: a socket where Postfix asks for a
// decision (its delegation protocol).
type PolicyService struct {
	// Name appears in the log and in metrics: the name in the table, else the
	// address. No two doors and listeners have a name in common.
	Name string `toml:"name"`

	// Addr is "host:port", or "unix:" with the absolute path of a socket.
	Addr string `toml:"addr"`

	SocketMode string   `toml:"socket_mode"` // three or four octal digits; see Door.Mode
	Lists      []string `toml:"lists"`       // names of the lists that apply; empty: all

	ExemptAuthenticated bool `toml:"exempt_authenticated"` // do not judge the mail of authenticated clients

	MaxConnections Connections `toml:"max_connections" range:"0,1000000"` // 0: any number
}

// Milter is a [[milter]] table: a socket where Postfix or Sendmail ask for a
// decision with the milter protocol. The fields are those of a PolicyService.
type Milter struct {
	Name                string      `toml:"name"`
	Addr                string      `toml:"addr"`
	SocketMode          string      `toml:"socket_mode"`
	Lists               []string    `toml:"lists"`
	ExemptAuthenticated bool        `toml:"exempt_authenticated"`
	MaxConnections      Connections `toml:"max_connections" range:"0,1000000"`
}

// DNSServer is a [[dns_server]] table: the lists as a DNS blocklist.
type DNSServer struct {
	Name string `toml:"name"` // as that of a PolicyService
	Addr string `toml:"addr"` // "host:port", for UDP and TCP

	// Zone holds the domains of the lists, and HashedZone the hashes of their
	// addresses: domain names in lower case without a final dot. At least one is
	// not empty, and none is the other or below it.
	Zone       string `toml:"zone"`
	HashedZone string `toml:"hashed_zone"`

	Lists []string `toml:"lists"` // names of the lists that apply; empty: all

	TTL time.Duration `toml:"ttl" range:"1s,24h"` // whole seconds

	AllowClients []netip.Prefix `toml:"allow_clients"` // masked, never IPv4-mapped IPv6, at least one

	// NetworkAnswersPerSecond bounds the answers over UDP to the clients of a
	// network (/24, /48) together; 0: any number. Clients on this machine have no
	// limit.
	NetworkAnswersPerSecond int64 `toml:"network_answers_per_second" range:"0,1000000"`

	MaxConnections Connections `toml:"max_connections" range:"0,1000000"` // over TCP; 0: any number
}

// The tables of the doors.
const (
	TablePolicyService = "policy_service"
	TableMilter        = "milter"
	TableDNSServer     = "dns_server"
)

// Door is what the tables of all doors have in common.
type Door struct {
	Table string // TablePolicyService, TableMilter or TableDNSServer
	Index int    // of the table among those of its kind

	Name, Addr, SocketMode string
	Lists                  []string
	ExemptAuthenticated    bool
	MaxConnections         Connections
}

// Doors returns all doors: policy services, milters and DNS servers.
func (c *Config) Doors() []Door {
	var all []Door
	for i, p := range c.PolicyServices {
		all = append(all, Door{TablePolicyService, i, p.Name, p.Addr, p.SocketMode, p.Lists, p.ExemptAuthenticated, p.MaxConnections})
	}
	for i, m := range c.Milters {
		all = append(all, Door{TableMilter, i, m.Name, m.Addr, m.SocketMode, m.Lists, m.ExemptAuthenticated, m.MaxConnections})
	}
	for i, s := range c.DNSServers {
		all = append(all, Door{TableDNSServer, i, s.Name, s.Addr, "", s.Lists, false, s.MaxConnections})
	}
	return all
}

// Door returns a door by its table.
func (c *Config) Door(table string, i int) Door {
	all := c.Doors()
	return all[slices.IndexFunc(all, func(d Door) bool { return d.Table == table && d.Index == i })]
}

// Path returns the path of the door's table, and Key that of a key there, for
// [Config.Fault].
func (d Door) Path() string          { return element(d.Table, d.Index) }
func (d Door) Key(key string) string { return d.Path() + "." + key }

// Mode returns the permissions of the door's socket.
func (d Door) Mode() fs.FileMode {
	mode, _ := strconv.ParseUint(d.SocketMode, 8, 9) // Load has checked it
	return fs.FileMode(mode)
}

// Unix returns the path of the door's socket, if it is a unix socket.
func (d Door) Unix() (path string, ok bool) { return strings.CutPrefix(d.Addr, schemeUnix) }

// resolveSocket makes the path of a door's unix socket absolute, also in its name if
// that is the address.
func resolveSocket(addr, name *string, abs func(string) string) {
	path, ok := strings.CutPrefix(*addr, schemeUnix)
	if !ok {
		return
	}
	full := schemeUnix + abs(path)
	if *name == *addr {
		*name = full
	}
	*addr = full
}

// schemeUnix begins the address of a unix socket.
const schemeUnix = "unix:"
