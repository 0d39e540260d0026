package nexthop

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// The schemes of next hops.
const (
	SchemeSMTP     = "smtp"      // SMTP over TCP
	SchemeSMTPS    = "smtps"     // the same, with TLS from the first byte
	SchemeLMTP     = "lmtp"      // LMTP over TCP
	SchemeLMTPUnix = "lmtp+unix" // LMTP over a Unix domain socket
	SchemeMaildir  = "maildir"   // a directory
)

// defaultPorts are the ports of the schemes with a host: IANA's for smtp and
// submissions (RFC 8314), and the common one for LMTP, which has none of its own and
// must not use 25 (RFC 2033, section 5).
var defaultPorts = map[string]string{SchemeSMTP: "25", SchemeSMTPS: "465", SchemeLMTP: "24"}

// maxSocketPath is the longest path that fits in a sockaddr_un with a final NUL.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// expected ends the errors about an address.
const expected = `expected "smtp://host", "smtp://host:port", "smtp://[::1]:25", "smtps://host", "lmtp://host", "lmtp+unix:/path" and "maildir:directory"`

// Address is the address of a next hop in a configuration.
type Address struct {
	// Scheme is one of the Scheme constants.
	Scheme string

	// Network is "tcp", "unix", or "" for a Maildir.
	Network string

	// Addr is host and port, the path of the socket, or the directory. Paths
	// may be relative.
	Addr string
}

// String returns the address in the form of Parse, with the port.
func (a Address) String() string {
	if a.Network == "tcp" {
		return a.Scheme + "://" + a.Addr
	}
	return a.Scheme + ":" + a.Addr
}

// Parse parses the address of a next hop: "smtp://host[:port]" with the default port
// 25, "smtps://host[:port]" with 465, "lmtp://host[:port]" with 24, "lmtp+unix:path"
// and "maildir:directory". The host is a name, an IPv4 address, or an IPv6 address in
// brackets.
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
			err = errors.New("unknown scheme")
			break
		}
		a.Network = "tcp"
		a.Addr, err = parseHostPort(hostport, port)
	}
	if err != nil {
		return Address{}, fmt.Errorf("next hop %q: %w; %s", addr, err, expected)
	}
	return a, nil
}

func checkSocketPath(path string) error {
	switch {
	case path == "":
		return errors.New("no path")
	case strings.HasPrefix(path, "//"):
		return errors.New("bad path: remove the // after the colon")
	case strings.ContainsRune(path, 0):
		return errors.New("bad path: it has a NUL")
	case len(path) > maxSocketPath:
		return fmt.Errorf("bad path: %d bytes, and that of a socket may have %d", len(path), maxSocketPath)
	}
	return nil
}

// parseHostPort returns "host", "host:port", "[v6]" and "[v6]:port" in the form
// "host:port".
func parseHostPort(s, defaultPort string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		// It may be a host alone. An error that remains is in the host.
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

// New returns the target of an address in the form of Parse. The config is for SMTP
// and LMTP: addr sets its Network, Addr and LMTP, and "smtps" sets TLS.Mode to
// TLSImplicit. A Maildir uses its Logger. A relative path is relative to the working
// directory.
func New(addr string, config SMTPConfig) (Target, error) {
	a, err := Parse(addr)
	if err != nil {
		return nil, err
	}
	// A nil *SMTP would not be a nil Target.
	if a.Scheme == SchemeMaildir {
		m, err := NewMaildir(a.Addr, config.Logger)
		if err != nil {
			return nil, err
		}
		if config.Meter != nil {
			m.meter = config.Meter
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

// address returns the config's Address. Parse has no scheme for SMTP over a Unix
// socket.
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

// logger returns l, or a logger that discards if l is nil.
func logger(l *slog.Logger) *slog.Logger {
	return cmp.Or(l, slog.New(slog.DiscardHandler))
}
