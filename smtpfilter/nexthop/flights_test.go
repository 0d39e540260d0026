package nexthop

import (
	"net/netip"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
)

// What two servers offer: smtp-sink, of Postfix's benchmark tools, and Postfix itself.
const (
	sinkOffers    = "PIPELINING|8BITMIME|XCLIENT NAME HELO|XFORWARD NAME ADDR PROTO HELO"
	postfixOffers = "PIPELINING|XCLIENT NAME ADDR PROTO HELO REVERSE_NAME PORT LOGIN DESTADDR DESTPORT|" +
		"XFORWARD NAME ADDR PROTO HELO SOURCE PORT IDENT"
)

// TestFlights counts what the next hop waits for: the flights of commands that bring a
// message, and the commands in each. The two messages come over connections of
// their own to the gate, which differ in the client's port; the next hop's is kept.
func TestFlights(t *testing.T) {
	for _, c := range []struct {
		name     string
		offers   string
		identity Identity
		config   smtptest.Config
		first    string // the verbs of the first message, flights separated by "|"
		second   string
	}{
		{"none, sink", sinkOffers, IdentityNone, smtptest.Config{},
			"EHLO|MAIL RCPT|DATA", "MAIL RCPT|DATA"},
		{"none, Postfix", postfixOffers, IdentityNone, smtptest.Config{},
			"EHLO|XFORWARD MAIL RCPT|DATA", "XFORWARD MAIL RCPT|DATA"},
		{"xforward, sink", sinkOffers, IdentityXFORWARD, smtptest.Config{},
			"EHLO|XFORWARD XFORWARD MAIL RCPT|DATA", "XFORWARD XFORWARD MAIL RCPT|DATA"},
		{"xforward, Postfix", postfixOffers, IdentityXFORWARD, smtptest.Config{},
			"EHLO|XFORWARD XFORWARD XFORWARD MAIL RCPT|DATA", "XFORWARD XFORWARD XFORWARD MAIL RCPT|DATA"},
		{"auto, sink", sinkOffers, IdentityAuto, smtptest.Config{},
			"EHLO|XCLIENT|EHLO|MAIL RCPT|DATA", "MAIL RCPT|DATA"},
		{"xclient, sink", sinkOffers, IdentityXCLIENT, smtptest.Config{},
			"EHLO|XCLIENT|EHLO|MAIL RCPT|DATA", "MAIL RCPT|DATA"},
		{"xclient, one client a connection, no ports", sinkOffers, IdentityXCLIENT, smtptest.Config{OneXCLIENT: true},
			"EHLO|XCLIENT|EHLO|MAIL RCPT|DATA", "MAIL RCPT|DATA"},
		{"xclient, ports are told", strings.Replace(sinkOffers, "NAME HELO|", "NAME HELO PORT|", 1), IdentityXCLIENT, smtptest.Config{},
			"EHLO|XCLIENT|EHLO|MAIL RCPT|DATA", "XCLIENT|EHLO|MAIL RCPT|DATA"},
		{"xclient, Postfix", postfixOffers, IdentityXCLIENT, smtptest.Config{OneXCLIENT: true},
			"EHLO|XCLIENT|EHLO|XFORWARD XFORWARD MAIL RCPT|DATA", "EHLO|XCLIENT|EHLO|XFORWARD XFORWARD MAIL RCPT|DATA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Extensions = strings.Split(c.offers, "|")
			sink := smtptest.NewSink(t, c.config)
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, Identity: c.identity})
			for i, want := range []string{c.first, c.second} {
				before := len(sink.Commands())
				client := testClient
				client.Addr = netip.AddrPortFrom(testClient.Addr.Addr(), uint16(5000+i))
				tx := hop.Begin(Envelope{Client: client, From: "a@example.com", ID: "x"})
				if reply, err := tx.Rcpt(t.Context(), "b@example.net", nil); err != nil || !reply.Positive() {
					t.Fatal(reply, err)
				}
				m, _, err := tx.Data(t.Context(), Stuffed)
				if err != nil {
					t.Fatal(err)
				}
				if reply, err := m.Commit(t.Context()); err != nil || !reply.Positive() {
					t.Fatal(reply, err)
				}
				if got := flights(sink.Commands()[before:]); got != want {
					t.Errorf("message %d: %s\nwant %s", i+1, got, want)
				}
			}
			if v := sink.Violations(); v != nil {
				t.Error(v)
			}
		})
	}
}

// flights returns the verbs of commands, those of one flight separated by " ", flights
// by "|".
func flights(commands []smtptest.Command) string {
	var all []string
	for i, c := range commands {
		if i > 0 && c.Conn == commands[i-1].Conn && c.Flight == commands[i-1].Flight {
			all[len(all)-1] += " " + c.Verb()
			continue
		}
		all = append(all, c.Verb())
	}
	return strings.Join(all, "|")
}

// TestKeptForItsClient keeps several connections: a client gets the one that has its
// identity, even if another was used last.
func TestKeptForItsClient(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: strings.Split(sinkOffers, "|")})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	helos := []string{"one.example", "two.example", "three.example"}
	send := func(port uint16, helo string) Transaction {
		client := Client{Addr: netip.AddrPortFrom(testClient.Addr.Addr(), port), Helo: helo}
		tx := hop.Begin(Envelope{Client: client, From: "a@example.com", ID: "x"})
		if reply, err := tx.Rcpt(t.Context(), "b@example.net", nil); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
		return tx
	}
	var open []Transaction
	for i, helo := range helos {
		open = append(open, send(uint16(i+1), helo))
	}
	for i, tx := range open {
		tx.Abort()
		waitFor(t, "the connection to be idle", func() bool {
			hop.mu.Lock()
			defer hop.mu.Unlock()
			return len(hop.idle) == i+1
		})
	}
	before := len(sink.Commands())
	for i, helo := range helos { // the one that was used last is the last one's
		open[i] = send(uint16(i+100), helo)
	}
	for _, tx := range open {
		tx.Abort()
	}
	for _, c := range sink.Commands()[before:] {
		if c.Verb() == "XCLIENT" || c.Verb() == "EHLO" {
			t.Errorf("connection %d: %s", c.Conn, c.Line)
		}
	}
	if n := sink.Conns(); n != len(helos) {
		t.Errorf("%d connections", n)
	}
}
