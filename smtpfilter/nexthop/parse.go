package nexthop

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
)

// The schemes of next hops that exist.
const (
	SchemeSMTP    = "smtp"
	SchemeMaildir = "maildir"
)

// possible ends the errors about an address.
const possible = `possible are "smtp://host", "smtp://host:port", "smtp://[::1]:25" and "maildir:directory"`

// Parse splits a next hop as it is written in a configuration into its scheme
// and the rest: host and port of "smtp://host[:port]", where the port is 25
// unless it is given, and the directory of "maildir:directory".
func Parse(addr string) (scheme, rest string, err error) {
	if dir, ok := strings.CutPrefix(addr, SchemeMaildir+":"); ok {
		if dir == "" {
			return "", "", fmt.Errorf("next hop %q: no directory; %s", addr, possible)
		}
		return SchemeMaildir, dir, nil
	}
	if hostport, ok := strings.CutPrefix(addr, SchemeSMTP+"://"); ok {
		rest, err := parseHostPort(hostport)
		if err != nil {
			return "", "", fmt.Errorf("next hop %q: %w; %s", addr, err, possible)
		}
		return SchemeSMTP, rest, nil
	}
	return "", "", fmt.Errorf("next hop %q: unknown kind; %s", addr, possible)
}

// parseHostPort brings "host", "host:port", "[v6]" and "[v6]:port" into the
// form "host:port".
func parseHostPort(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		// A host alone is tried again with the default port; what is still
		// wrong then is wrong in the host.
		if host, port, err = net.SplitHostPort(s + ":25"); err != nil {
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
// config holds for SMTP, its Addr apart; a Maildir takes its Logger. A relative
// directory is relative to the working directory.
func New(addr string, config SMTPConfig) (Target, error) {
	scheme, rest, err := Parse(addr)
	if err != nil {
		return nil, err
	}
	// Not returned as they come: a nil *SMTP is no nil Target.
	if scheme == SchemeMaildir {
		m, err := NewMaildir(rest, config.Logger)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	config.Addr = rest
	s, err := NewSMTP(config)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// logger gives a logger in any case.
func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
