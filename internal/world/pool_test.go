package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/nexthop"
)

// TestPool plays up to three transactions at a time over the kept connections to a next hop that
// refuses, and closes connections.
//
// What is watched: each message that is acknowledged is there once, with its own sender and those
// recipients that were accepted; nothing else is; the next hop never gets DATA without a recipient.
func TestPool(t *testing.T) {
	run(t, &part{few: 100, draw: drawPool, play: playPool})
}

// A poolMove is a step of a transaction.
type poolMove struct {
	what string
	slot int
	to   string
}

func (m *poolMove) String() string { return fmt.Sprintf("%+v", *m) }

func drawPool(r *rand.Rand) []move {
	moves := make([]move, 10+r.IntN(30))
	for i := range moves {
		moves[i] = &poolMove{pick(r, "begin", "recipient", "recipient", "recipient", "send", "send", "abort"), r.IntN(3), pick(r, "ann", "bob", "refused", "later", "drop")}
	}
	return moves
}

// A flight is a transaction, and what the next hop has accepted of it.
type flight struct {
	id       string
	tx       nexthop.Transaction
	accepted []string
}

func playPool(w *world, moves []move) error {
	sink := smtptest.NewSink(w.T, smtptest.Config{Answer: func(c smtptest.Command) string {
		switch {
		case strings.HasPrefix(c.Line, "RCPT TO:<refused"):
			return "550 5.1.1 no such user"
		case strings.HasPrefix(c.Line, "RCPT TO:<later"):
			return "451 4.3.0 later"
		case strings.HasPrefix(c.Line, "RCPT TO:<drop"):
			return smtptest.Close
		}
		return ""
	}})
	defer sink.Close()
	hop := must(nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", Reuse: true, ProbeInterval: -1}))
	defer hop.Close()
	var slots [3]*flight
	var sent []*flight
	for i, m := range moves {
		m := m.(*poolMove)
		f := slots[m.slot]
		if m.what == "begin" && f == nil {
			id := fmt.Sprintf("m%d", i)
			slots[m.slot] = &flight{id: id, tx: hop.Begin(nexthop.Envelope{From: id + "@a.example", Client: nexthop.Client{Addr: netip.MustParseAddrPort("192.0.2.1:4000"), Proto: "ESMTP"}})}
			w.tell("%d. %s begins", i+1, id)
		}
		if f == nil || m.what == "begin" {
			continue
		}
		w.tell("%d. %s: %s %s", i+1, f.id, m.what, m.to)
		if m.what == "recipient" {
			to := m.to + "@b.example"
			reply, err := f.tx.Rcpt(context.Background(), to, nil)
			if err == nil && reply.Positive() {
				f.accepted = append(f.accepted, "RCPT TO:<"+to+">")
			}
			if good := m.to == "ann" || m.to == "bob"; err == nil && reply.Positive() && !good {
				return fmt.Errorf("%s is accepted: %s", m.to, reply)
			}
			continue
		}
		if m.what == "send" && f.send() {
			w.tell("    sent to %v", f.accepted)
			sent = append(sent, f)
		}
		f.tx.Abort()
		slots[m.slot] = nil
	}
	for _, f := range slots {
		if f != nil {
			f.tx.Abort()
		}
	}
	return checkPool(sink, sent)
}

// send sends a message, and reports whether the next hop has acknowledged it.
func (f *flight) send() bool {
	m, _, err := f.tx.Data(context.Background(), nexthop.Stuffed)
	if err != nil || m == nil {
		return false
	}
	if _, err := m.Write([]byte("Subject: " + f.id + "\r\n\r\ntext\r\n")); err != nil {
		return false
	}
	reply, err := m.Commit(context.Background())
	return err == nil && reply.Positive()
}

// checkPool compares what the next hop has got with what was acknowledged.
func checkPool(sink *smtptest.Sink, sent []*flight) error {
	messages := sink.Messages()
	for _, f := range sent {
		i := slices.IndexFunc(messages, func(m smtptest.Message) bool { return strings.Contains(string(m.Raw), "Subject: "+f.id+"\r\n") })
		if i < 0 {
			return fmt.Errorf("%s was acknowledged, and the next hop does not have it", f.id)
		}
		if m := messages[i]; !strings.HasPrefix(m.Mail, "MAIL FROM:<"+f.id+"@") || !slices.Equal(m.Rcpts, f.accepted) {
			return fmt.Errorf("%s was accepted for %v, and has %s, %v", f.id, f.accepted, m.Mail, m.Rcpts)
		}
		messages = slices.Delete(messages, i, i+1)
	}
	if len(messages) > 0 {
		return fmt.Errorf("the next hop has a message that was not acknowledged, or has it twice: %q", messages[0].Raw)
	}
	recipients := map[int]int{} // by connection
	for _, c := range sink.Commands() {
		switch c.Verb() {
		case "MAIL", "RSET", "EHLO":
			recipients[c.Conn] = 0
		case "RCPT":
			if strings.Contains(c.Line, "<ann") || strings.Contains(c.Line, "<bob") {
				recipients[c.Conn]++
			}
		case "DATA":
			if recipients[c.Conn] == 0 {
				return fmt.Errorf("DATA on connection %d, where no recipient was accepted", c.Conn)
			}
		}
	}
	return nil
}
