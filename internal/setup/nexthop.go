package setup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/smtpfilter/nexthop"
)

// Edges are what a simulation puts in the place of the network and of chance; nil: nothing.
type Edges struct {
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Random func() float64
}

// NewNextHop returns a next hop, or a group of next hops. It does not wait for them.
func NewNextHop(c *config.Config, n config.NextHop, log *slog.Logger, meter nexthop.Meter, edges Edges) (nexthop.Target, error) {
	sc, err := smtpConfig(c.Hostname, n, log)
	if err != nil {
		return nil, err
	}
	sc.Meter, sc.Dial = meter, edges.Dial
	var members []nexthop.Target
	discard := func(err error) error {
		for _, m := range members {
			err = errors.Join(err, m.Close())
		}
		return err
	}
	for _, addr := range n.Addr {
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
	if n.Balance == "round_robin" {
		balance = nexthop.RoundRobin
	}
	g, err := nexthop.NewGroup(members, nexthop.GroupConfig{Balance: balance, Logger: log, Random: edges.Random})
	if err != nil {
		return nil, discard(err)
	}
	return g, nil
}

// smtpConfig returns the settings for connections to any mail server.
func smtpConfig(hostname string, n config.NextHop, log *slog.Logger) (nexthop.SMTPConfig, error) {
	sc := nexthop.SMTPConfig{
		Hostname:      hostname,
		Reuse:         n.Reuse,
		Chunks:        n.Chunking,
		ProbeInterval: n.ProbeInterval,
		GateID:        PathID,
		Timeouts:      timeouts(n),
		Logger:        log,

		MessagesPerConnection: int(n.MessagesPerConnection),
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
	var err error
	sc.TLS, err = tlsConfig(n)
	return sc, err
}

// PathID identifies this process to other gates, so that it detects its own mail.
var PathID = rand.Text()[:12]

// maxSilence is the time after which the gate checks over another connection whether a silent
// next hop still works. Working servers greet sooner.
const maxSilence = 5 * time.Second

// timeouts returns the timeouts for the next hop. Those without a configuration key follow RFC
// 5321, section 4.5.3.2, such as the 10 minutes after a message.
func timeouts(n config.NextHop) nexthop.Timeouts {
	return nexthop.Timeouts{
		Connect:  n.ConnectTimeout,
		Greeting: n.ConnectTimeout,
		Hello:    n.ConnectTimeout,
		Mail:     n.ReplyTimeout,
		Rcpt:     n.ReplyTimeout,
		Data:     n.ReplyTimeout,
		Suspect:  min(maxSilence, n.ConnectTimeout),
	}
}

// tlsConfig returns the TLS settings for the next hop. The scheme smtps:// is the target's.
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

// MailServers returns the servers of a next hop; a Maildir has none.
func MailServers(t nexthop.Target) []*nexthop.SMTP {
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
