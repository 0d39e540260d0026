package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/smtpfilter/nexthop"
)

// newNextHop makes the next hop, or the group of next hops. Nothing waits for
// them to answer.
func newNextHop(c *config.Config, log *slog.Logger) (nexthop.Target, error) {
	sc, err := smtpConfig(c, log)
	if err != nil {
		return nil, err
	}
	var members []nexthop.Target
	discard := func(err error) error {
		for _, m := range members {
			err = errors.Join(err, m.Close())
		}
		return err
	}
	for _, addr := range c.NextHop.Addr {
		m, err := nexthop.New(addr, sc)
		if err != nil {
			return nil, discard(err)
		}
		members = append(members, m)
	}
	if len(members) == 1 {
		return members[0], nil
	}
	balance := nexthop.Priority
	if c.NextHop.Balance == "round_robin" {
		balance = nexthop.RoundRobin
	}
	g, err := nexthop.NewGroup(members, nexthop.GroupConfig{Balance: balance, Logger: log})
	if err != nil {
		return nil, discard(err)
	}
	return g, nil
}

// smtpConfig is how the gate speaks with a mail server, wherever that is.
func smtpConfig(c *config.Config, log *slog.Logger) (nexthop.SMTPConfig, error) {
	n := c.NextHop
	sc := nexthop.SMTPConfig{
		Hostname:      c.Hostname,
		Reuse:         n.Reuse,
		Merge:         n.Merge,
		ProbeInterval: n.ProbeInterval,
		Logger:        log,
	}
	switch n.Identity {
	case "xclient":
		sc.Identity = nexthop.IdentityXCLIENT
	case "xforward":
		sc.Identity = nexthop.IdentityXFORWARD
	case "none":
		sc.Identity = nexthop.IdentityNone
	}
	switch n.Proxy {
	case "v1":
		sc.Proxy = 1
	case "v2":
		sc.Proxy = 2
	}
	if len(n.Addr) > 1 {
		sc.Timeouts = groupTimeouts
	}
	var err error
	sc.TLS, err = tlsConfig(n)
	return sc, err
}

// groupTimeouts are how long one of several next hops is waited for. With those of
// RFC 5321, section 4.5.3.2, one that is there and says nothing would take all the
// time that a client has for RCPT, 5 minutes, and none were left to ask another one.
// MAIL has more than the rest, since its reply may wait for that to RCPT.
var groupTimeouts = nexthop.Timeouts{
	Connect:  10 * time.Second,
	Greeting: 30 * time.Second,
	Mail:     2 * time.Minute,
}

// tlsConfig is how the next hop's connection is protected; smtps:// is the
// target's own to see.
func tlsConfig(n config.NextHop) (nexthop.TLSConfig, error) {
	t := nexthop.TLSConfig{Name: n.TLSName}
	switch n.TLS {
	case "opportunistic":
		t.Mode = nexthop.TLSOpportunistic
	case "required":
		t.Mode = nexthop.TLSRequired
	}
	if n.TLSCA != "" {
		roots, err := certs.LoadPool(n.TLSCA)
		if err != nil {
			return t, fmt.Errorf("next_hop.tls_ca: %w", err)
		}
		t.Roots = roots
	}
	for _, pin := range n.TLSPins {
		var sum [32]byte
		if _, err := hex.Decode(sum[:], []byte(pin)); err != nil {
			return t, fmt.Errorf("next_hop.tls_pins: %w", err)
		}
		t.Pins = append(t.Pins, sum)
	}
	return t, nil
}

// mailServers are the servers that a next hop consists of; a Maildir has none.
func mailServers(t nexthop.Target) []*nexthop.SMTP {
	members := []nexthop.Target{t}
	if group, ok := t.(*nexthop.Group); ok {
		members = group.Members()
	}
	var servers []*nexthop.SMTP
	for _, m := range members {
		if server, ok := m.(*nexthop.SMTP); ok {
			servers = append(servers, server)
		}
	}
	return servers
}
