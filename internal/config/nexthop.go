package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NextHop says where accepted mail goes.
type NextHop struct {
	// Addr holds one next hop or several, none twice, the preferred one first:
	// "smtp://host:port", "smtps://host:port" (TLS from the first byte),
	// "lmtp://host:port", or "lmtp+unix:" and the absolute path of a socket. The
	// port is always there, the host in lower case. Those with SMTP and those
	// with LMTP are never together. Or it holds "maildir:" and an absolute
	// directory, and nothing else.
	Addr Addresses `toml:"addr"`

	// Reuse keeps connections to the next hop for the next message.
	Reuse bool `toml:"reuse"`

	// Balance is "priority" (the first that works) or "round_robin".
	Balance string `toml:"balance"`

	// Merge is a key of earlier versions. It has no effect, and is always false;
	// Warnings tells of it.
	Merge bool `toml:"merge"`

	// Identity is "auto", "xclient", "xforward" or "none"; see the package
	// nexthop.
	Identity string `toml:"identity"`

	// Proxy is "", "v1" or "v2": the PROXY protocol towards the next hop.
	Proxy string `toml:"proxy"`

	// TLS is "none", "opportunistic" or "required", and says what becomes of
	// STARTTLS. It does not hold for "smtps://". Over a unix socket it is "none".
	TLS string `toml:"tls"`

	// TLSCA is the absolute path of a PEM file with the authorities to trust; "":
	// the system's. Like TLSName and TLSPins it is only there where certificates
	// are verified: with TLS "required" or "smtps://".
	TLSCA string `toml:"tls_ca"`

	// TLSName is what the certificate must be for; "": the host of Addr.
	TLSName string `toml:"tls_name"`

	// TLSPins are SHA-256 sums of public keys, of 64 lower-case hexadecimal
	// digits each. They are never there together with a TLSCA.
	TLSPins []string `toml:"tls_pins"`

	// ProbeInterval is how often the next hop is asked what it offers; 1 s to
	// 1 h.
	ProbeInterval time.Duration `toml:"probe_interval"`

	// ConnectTimeout is how long the next hop may take to accept a connection, to
	// greet and to answer EHLO, each; 1 s to 5 min.
	ConnectTimeout time.Duration `toml:"connect_timeout"`

	// ReplyTimeout is how long it may take to reply to any other command, but not to
	// a message; 1 s to 10 min.
	ReplyTimeout time.Duration `toml:"reply_timeout"`

	// MessagesPerConnection is how many messages go over one connection, 1 to
	// 1000000. 0 is as many as suit the server; see the package nexthop.
	MessagesPerConnection int64 `toml:"messages_per_connection"`

	// AllowPublic lets a listener beyond loopback stand in front of a Maildir.
	AllowPublic bool `toml:"allow_public"`
}

// The schemes of NextHop.Addr.
const (
	schemeMaildir  = "maildir:"
	schemeSMTP     = "smtp://"
	schemeSMTPS    = "smtps://"
	schemeLMTP     = "lmtp://"
	schemeLMTPUnix = "lmtp+unix:"
)

// tcpSchemes are those with a host, and the port that one has if it names none.
var tcpSchemes = []struct{ scheme, port string }{
	{schemeSMTP, "25"},
	{schemeSMTPS, "465"},
	{schemeLMTP, "24"},
}

// Maildir returns the directory where the next hop is a Maildir.
func (n NextHop) Maildir() (dir string, ok bool) {
	if len(n.Addr) != 1 {
		return "", false
	}
	return strings.CutPrefix(n.Addr[0], schemeMaildir)
}

// TCP returns "host:port" of each next hop over TCP, whatever it speaks.
func (n NextHop) TCP() []string {
	var hostports []string
	for _, addr := range n.Addr {
		for _, s := range tcpSchemes {
			if hostport, ok := strings.CutPrefix(addr, s.scheme); ok {
				hostports = append(hostports, hostport)
			}
		}
	}
	return hostports
}

// has reports whether one of the next hops is of a scheme.
func (n NextHop) has(scheme string) bool {
	return slices.ContainsFunc(n.Addr, func(addr string) bool { return strings.HasPrefix(addr, scheme) })
}

// overhears returns a next hop the way to which somebody can listen on: one on
// another machine, without TLS or with one that goes on without when it is disturbed.
// Only localhost and loopback addresses are certainly this machine.
func (n NextHop) overhears() (addr string, ok bool) {
	for _, addr := range n.Addr {
		hostport, plain := strings.CutPrefix(addr, schemeSMTP)
		host, _, err := net.SplitHostPort(hostport)
		if !plain || n.TLS == "required" || err != nil || host == "localhost" {
			continue
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
			return addr, true
		}
	}
	return "", false
}

// LMTP reports whether the next hop speaks LMTP.
func (n NextHop) LMTP() bool { return n.has("lmtp") }

// protocol is what an address's next hop speaks.
func protocol(addr string) string {
	switch {
	case strings.HasPrefix(addr, schemeMaildir):
		return "a Maildir"
	case strings.HasPrefix(addr, schemeSMTP), strings.HasPrefix(addr, schemeSMTPS):
		return "SMTP"
	default:
		return "LMTP"
	}
}

// normalNextHop checks one address of a next hop, and completes its port.
func normalNextHop(s string) (string, error) {
	if dir, ok := strings.CutPrefix(s, schemeMaildir); ok {
		if dir == "" || strings.HasPrefix(dir, "//") {
			return "", errors.New("names no directory")
		}
		return s, nil
	}
	if path, ok := strings.CutPrefix(s, schemeLMTPUnix); ok {
		switch {
		case path == "":
			return "", errors.New("names no socket")
		case strings.HasPrefix(path, "//"):
			return "", errors.New("has more than one slash in front of its path")
		}
		return s, nil
	}
	for _, known := range tcpSchemes {
		if rest, ok := strings.CutPrefix(s, known.scheme); ok {
			hostport, err := normalHostPort(strings.TrimSuffix(rest, "/"), known.port)
			return known.scheme + hostport, err
		}
	}
	return "", errors.New("is not a supported next hop")
}

// normalHostPort takes a host with or without a port.
func normalHostPort(s, defaultPort string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil { // no port, or nonsense, which the checks below refuse
		host, port = s, defaultPort
		if inner, ok := strings.CutPrefix(s, "["); ok {
			host = strings.TrimSuffix(inner, "]")
		} else if _, err := netip.ParseAddr(s); err == nil && strings.Contains(s, ":") {
			return "", errors.New("has an IPv6 address that is not in brackets")
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("has the port %q, which is no number from 1 to 65535", port)
	}
	if host == "" {
		return "", errors.New("names no host")
	}
	name, err := normalHost(host)
	if err != nil {
		return "", fmt.Errorf("has the host %q, which %w", host, err)
	}
	return net.JoinHostPort(name, strconv.FormatUint(n, 10)), nil
}
