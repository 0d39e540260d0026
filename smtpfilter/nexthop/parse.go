package nexthop

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
)

// The schemes of next hops.
const (
	SchemeSMTP     = "smtp"      // SMTP over TCP
	SchemeSMTPS    = "smtps"     // the same, with TLS from the first byte
	SchemeLMTP     = "lmtp"      // LMTP over TCP
	SchemeLMTPUnix = "lmtp+unix" // LMTP over a Unix domain socket
	SchemeMaildir  = "maildir"   // a directory
)

// defaultPorts are those of the schemes with a host: IANA's for smtp and
// submissions (RFC 8314), and what LMTP servers commonly use, since LMTP has none
// and must not have 25 (RFC 2033, section 5).
var defaultPorts = map[string]string{SchemeSMTP: "25", SchemeSMTPS: "465", SchemeLMTP: "24"}

// maxSocketPath is the longest path that fits in a sockaddr_un, its final NUL
// apart.
const maxSocketPath = 107

// possible ends the errors about an address.
const possible = `possible are "smtp://host", "smtp://host:port", "smtp://[::1]:25", "smtps://host", "lmtp://host", "lmtp+unix:/path" and "maildir:directory"`

// Address says where a next hop is, as a configuration has it.
type Address struct {
	// Scheme is one of the Scheme constants.
	Scheme string

	// Network is "tcp", "unix", or "" for a Maildir.
	Network string

	// Addr is host and port, the path of the socket, or the directory. Paths
	// may be relative.
	Addr string
}

// String is the address in the form that Parse reads, with the port.
func (a Address) String() string {
	if a.Network == "tcp" {
		return a.Scheme + "://" + a.Addr
	}
	return a.Scheme + ":" + a.Addr
}

// Parse reads the address of a next hop: "smtp://host[:port]" with 25 for a port
// that is not given, "smtps://host[:port]" with 465, "lmtp://host[:port]" with
// 24, "lmtp+unix:path" and "maildir:directory". The host is a name, an IPv4
// address, or an IPv6 address in brackets.
func Parse(addr string) (Address, error) {
	scheme, rest, _ := strings.Cut(addr, ":")
	a := Address{Scheme: scheme, Addr: rest}
	var err error
	switch scheme {
	case SchemeMaildir:
		if rest == "" {
			err = errors.New("no directory")
		}
	case SchemeLMTPUnix:
		a.Network = "unix"
		err = checkSocketPath(rest)
	default:
		hostport, slashes := strings.CutPrefix(rest, "//")
		port := defaultPorts[scheme]
		if !slashes || port == "" {
			err = errors.New("unknown kind")
			break
		}
		a.Network = "tcp"
		a.Addr, err = parseHostPort(hostport, port)
	}
	if err != nil {
		return Address{}, fmt.Errorf("next hop %q: %w; %s", addr, err, possible)
	}
	return a, nil
}

func checkSocketPath(path string) error {
	switch {
	case path == "":
		return errors.New("no path")
	case strings.HasPrefix(path, "//"):
		return errors.New("bad path: it begins behind the colon")
	case strings.ContainsRune(path, 0):
		return errors.New("bad path: a NUL in it")
	case len(path) > maxSocketPath:
		return fmt.Errorf("bad path: more than %d bytes", maxSocketPath)
	}
	return nil
}

// parseHostPort brings "host", "host:port", "[v6]" and "[v6]:port" into the
// form "host:port".
func parseHostPort(s, defaultPort string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		// A host alone is tried again with the default port; what is still
		// wrong then is wrong in the host.
		if host, port, err = net.SplitHostPort(s + ":" + defaultPort); err != nil {
			return "", err
		}
	}
	if host == "" || strings.ContainsAny(host, "/@ \t\r\n\x00") {
		return "", fmt.Errorf("bad host %q", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("bad port %q", port)
	}
	return net.JoinHostPort(host, port), nil
}

// New makes the target that addr names, in the form that Parse reads. The
// config holds for SMTP and LMTP: addr has its Network, Addr and LMTP, and
// "smtps" makes its TLS.Mode TLSImplicit. A Maildir takes its Logger. A relative
// path is relative to the working directory.
func New(addr string, config SMTPConfig) (Target, error) {
	a, err := Parse(addr)
	if err != nil {
		return nil, err
	}
	// Not returned as they come: a nil *SMTP is no nil Target.
	if a.Scheme == SchemeMaildir {
		m, err := NewMaildir(a.Addr, config.Logger)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	config.Network, config.Addr = a.Network, a.Addr
	config.LMTP = a.Scheme == SchemeLMTP || a.Scheme == SchemeLMTPUnix
	if a.Scheme == SchemeSMTPS {
		config.TLS.Mode = TLSImplicit
	}
	s, err := NewSMTP(config)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// address is what the config says as an Address. SMTP over a Unix socket has no
// scheme that Parse knows.
func (c *SMTPConfig) address() Address {
	a := Address{Scheme: SchemeSMTP, Network: c.Network, Addr: c.Addr}
	switch {
	case c.LMTP:
		a.Scheme = SchemeLMTP
	case c.TLS.Mode == TLSImplicit:
		a.Scheme = SchemeSMTPS
	}
	if c.Network == "unix" {
		a.Scheme += "+unix"
	}
	return a
}

// logger gives a logger in any case.
func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
