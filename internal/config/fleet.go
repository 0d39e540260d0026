package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// Fleet says how gates share lists.
type Fleet struct {
	// Name is that of this gate in the fleet: letters, digits, ".", "_" and "-". Load never
	// leaves it empty if the fleet is on.
	Name string `toml:"name"`

	// Servers holds "nats://host:port" or "tls://host:port". Empty: there is no fleet.
	Servers Addresses `toml:"servers"`

	Credentials string `toml:"credentials"` // absolute path; empty: none

	// Absolute paths of PEM files. TLSCA empty: the system's authorities.
	TLSCA   string `toml:"tls_ca"`
	TLSCert string `toml:"tls_cert"`
	TLSKey  string `toml:"tls_key"`

	Server FleetServer `toml:"server"`
}

// FleetServer describes a NATS server on this machine, which spamgate-fleetd runs. A gate ignores it.
type FleetServer struct {
	Listen  string    `toml:"listen"`  // "host:port"; empty: there is none
	Cluster string    `toml:"cluster"` // "host:port" for other servers; empty: it is alone
	Routes  Addresses `toml:"routes"`  // "nats://host:port" of the other servers' Cluster

	// Dir is the absolute path of its store; Load never leaves it empty.
	Dir string `toml:"dir"`

	TLSCert string `toml:"tls_cert"` // absolute paths, as those of Fleet
	TLSKey  string `toml:"tls_key"`
}

// Servers returns how many servers the cluster has, as far as the configuration tells.
func (s *FleetServer) Servers() int {
	others := map[string]bool{}
	for _, route := range s.Routes {
		if _, addr, _ := strings.Cut(route, "://"); addr != s.Cluster {
			others[addr] = true
		}
	}
	return 1 + len(others)
}

// On reports whether the gate belongs to a fleet.
func (f *Fleet) On() bool { return len(f.Servers) > 0 }

// FewServers says what a fleet lacks that has so few servers; "": nothing.
func FewServers(servers int) string {
	switch servers {
	case 1:
		return "the fleet has one server: while it is down, edits are refused"
	case 2:
		return "the fleet has two servers: while one is down, edits are refused"
	}
	return ""
}

// ThirdServer says what to do about FewServers.
const ThirdServer = `three go on while one is down: name three machines in "spamgate fleet init"; one of them needs no gate, only spamgate-fleetd`

// fleetDir is the directory in the state directory where the server has its store.
const fleetDir = "fleet/server"

// The schemes of a server's URL.
const (
	schemeNATS = "nats"
	schemeTLS  = "tls"
)

// natsPort is the port that NATS servers have by default.
const natsPort = "4222"

// fleet checks [fleet] and [fleet.server], after everything else that has an address.
func (d *document) fleet() {
	f := &d.cfg.Fleet
	if d.serverOnly && f.Server.Listen == "" {
		d.fail("fleet.server.listen", "is missing: there is no server to run", `write [fleet.server] and below it listen = "HOST:4222"; "spamgate fleet init" writes it`)
		return
	}
	switch {
	case f.On() || d.serverOnly:
	case f.Server.Listen == "":
		d.withoutFleet()
		return
	case !d.failedBelow("fleet.servers"):
		d.fail("fleet.servers", "is missing: spamgate-fleetd runs the server of [fleet.server], and the gate connects to it as to any other",
			`write servers = ["nats://HOST:4222"] in [fleet], with the addresses of all servers; or "tls://HOST:4222" if they have a tls_cert`)
	}
	d.memberName(f)
	for i := range f.Servers {
		d.natsURL(d.elementOrKey("fleet.servers", i), &f.Servers[i], natsPort)
	}
	d.certificates("fleet", oneFile(f.TLSCert), oneFile(f.TLSKey))
	d.fleetServer(f)
	for i, server := range f.Servers {
		u, err := url.Parse(server)
		if err == nil && f.Credentials == "" && f.TLSCert == "" && !isLoopback(u.Hostname()) {
			d.warn(d.elementOrKey("fleet.servers", i), "is used without credentials: unless a firewall keeps others out, everyone can change the lists",
				`write credentials = "FILE" in [fleet], or tls_cert and tls_key`)
			break
		}
	}
}

// withoutFleet warns about keys of a fleet that is off.
func (d *document) withoutFleet() {
	if d.failedBelow("fleet.servers") || d.failed["fleet.server.listen"] {
		return
	}
	const what = "has no effect without a server"
	d.idle("fleet", reflect.TypeFor[Fleet](), what, `write servers = ["nats://HOST:4222"] in [fleet], or remove the line`, "servers", "server")
	d.idle("fleet.server", reflect.TypeFor[FleetServer](), what, listenHint, "listen")
}

const listenHint = `write listen = "HOST:4222" in [fleet.server], or remove the line`

// maxMemberName bounds the name of a member, in bytes.
const maxMemberName = 100

func (d *document) memberName(f *Fleet) {
	switch {
	case f.Name == "" || d.failed["fleet.name"]:
	case !listName.MatchString(f.Name):
		d.fail("fleet.name", fmt.Sprintf("%q is not a valid name", f.Name), `use letters, digits, ".", "_" and "-", such as "mx1.example.net"; or "" for hostname`)
	case len(f.Name) > maxMemberName:
		d.fail("fleet.name", fmt.Sprintf("has %d bytes, more than %d", len(f.Name), maxMemberName), "write a shorter name")
	}
}

// notInMemberName matches what the name of a gate may have, and that of a member may not.
var notInMemberName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// natsURL checks the URL of a server, and completes it with a port.
func (d *document) natsURL(path string, server *string, port string) {
	u, err := parseNATS(*server, port)
	if err != nil {
		d.fail(path, fmt.Sprintf("%q %v", shownNATS(*server), err), fmt.Sprintf(`write "nats://HOST:%s", or "tls://HOST:%s" for TLS`, port, port))
		return
	}
	*server = u.String()
}

// shownNATS returns a URL without what may be a password.
func shownNATS(s string) string {
	if pos := strings.LastIndexByte(s, '@'); pos >= 0 {
		return "...@" + s[pos+1:]
	}
	return s
}

func parseNATS(s, port string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != schemeNATS && u.Scheme != schemeTLS || u.Opaque != "":
		return nil, errors.New("is not the URL of a NATS server")
	case u.User != nil:
		return nil, errors.New("contains a user name or a token, which belongs into the file of credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#") || strings.Trim(u.Path, "/") != "":
		return nil, errors.New("has more than a scheme, a host and a port")
	}
	host, err := normalHost(u.Hostname())
	if err != nil || host == "" || strings.Contains(host, "%") {
		return nil, errors.New("has no valid host")
	}
	port = cmp.Or(u.Port(), port)
	if !validPort(port) || strings.HasSuffix(u.Host, ":") {
		return nil, errors.New("has no valid port")
	}
	return &url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(host, port)}, nil
}

// fleetServer checks the server of spamgate-fleetd.
func (d *document) fleetServer(f *Fleet) {
	s := &f.Server
	d.certificates("fleet.server", oneFile(s.TLSCert), oneFile(s.TLSKey))
	if s.Listen == "" {
		d.idle("fleet.server", reflect.TypeFor[FleetServer](), "has no effect without listen", listenHint, "listen")
		return
	}
	d.fleetAddr("fleet.server.listen", s.Listen, "HOST:4222")
	if s.Cluster != "" {
		d.fleetAddr("fleet.server.cluster", s.Cluster, "HOST:6222")
	}
	if len(s.Routes) > 0 && s.Cluster == "" {
		d.fail("fleet.server.cluster", "is missing; routes have no effect without it", `write cluster = "HOST:6222", where the other servers connect`)
	}
	for i := range s.Routes {
		d.natsURL(d.elementOrKey("fleet.server.routes", i), &s.Routes[i], "6222")
	}
	if lacks := FewServers(s.Servers()); lacks != "" && !d.failedBelow("fleet.server.routes") && !d.failed["fleet.server.cluster"] {
		d.warn("fleet.server.listen", "has too few servers beside it: "+lacks, ThirdServer)
	}
	for key, addr := range map[string]string{"listen": s.Listen, "cluster": s.Cluster} {
		if host, _, err := net.SplitHostPort(addr); err == nil && !isLoopback(host) && f.Credentials == "" {
			d.fail("fleet.server."+key, fmt.Sprintf("%q is open beyond this machine, and without credentials everyone there can change the lists", addr),
				`write credentials = "FILE" in [fleet]; "spamgate fleet init" makes one`)
		}
	}
}

// fleetAddr checks an address of the server, and that nothing else has it.
func (d *document) fleetAddr(path, addr, example string) {
	if d.failed[path] {
		return
	}
	err := checkListen(addr)
	if err == nil && addr == Systemd {
		err = errors.New("belongs to [listen] or a [[listener]]")
	}
	if _, port, _ := net.SplitHostPort(addr); err == nil && port == "0" {
		err = errors.New("has no port where others find the server")
	}
	if err != nil {
		d.fail(path, fmt.Sprintf("%q %v", addr, err), fmt.Sprintf("write %q, with the port that this server is to have", example))
		return
	}
	d.takeWebAddr(takenAddr{addr, path, "fleet.server", "server of the fleet"})
}

// shared checks that a list can belong to the fleet.
func (d *document) shared(path string, l *List) {
	path += ".fleet"
	switch {
	case !l.Fleet || d.failed[path]:
	case !l.Managed && l.URL == "":
		d.fail(path, "is possible only in a list with managed = true or url: the gate never writes to your own files",
			"remove the line, or make the list a managed one (docs/lists.md)")
	case !d.cfg.Fleet.On() && !d.serverOnly && !d.failedBelow("fleet.servers") && !d.failed["fleet"]:
		d.fail(path, "has no effect without a fleet", `write [fleet] and below it servers = ["nats://HOST:4222"]; or remove the line`)
	}
}

// resolve makes the paths absolute, and completes what depends on other tables.
func (f *Fleet) resolve(c *Config, abs func(string) string) {
	for _, path := range []*string{&f.Credentials, &f.TLSCA, &f.TLSCert, &f.TLSKey, &f.Server.Dir, &f.Server.TLSCert, &f.Server.TLSKey} {
		*path = abs(*path)
	}
	if !f.On() && f.Server.Listen == "" {
		return
	}
	if f.Server.Dir == "" {
		f.Server.Dir = filepath.Join(c.State.Dir, fleetDir)
	}
	if f.Name == "" {
		f.Name = strings.Trim(notInMemberName.ReplaceAllString(c.Hostname, "-"), "-")
		f.Name = f.Name[:min(len(f.Name), maxMemberName)]
	}
}

// useless reports whether a key of [fleet] or [fleet.server] has no effect.
func (f *Fleet) useless(table, key string) bool {
	switch table {
	case "fleet":
		return !f.On() && key != "servers"
	case "fleet.server":
		return f.Server.Listen == "" && key != "listen"
	}
	return false
}
