package smtpfilter_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"spamgate/smtpfilter/nexthop/nexthoptest"
)

// attempt is a row of the ledger: what one client tried, and what it was told
// last.
type attempt struct {
	id    string
	body  []byte // as the client means it, without dot-stuffing
	reply string // to the message, "" where the client went away
	ended bool   // the final dot was sent whole
}

// TestLedger sends messages of random bytes from many clients, some of which go
// away in the middle, and settles the accounts: 250 means exactly one identical
// copy at the next hop, a refusal none, and a message that was cut short is not
// there at all.
func TestLedger(t *testing.T) {
	sink := nexthoptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: sink.Addr(), reuse: true})
	const clients, each = 16, 60
	rows := make([][]attempt, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { rows[i] = runClient(g.addr, i, each) })
	}
	wg.Wait()
	g.stop(t)

	copies := map[string][][]byte{}
	for _, m := range sink.Messages() {
		id, body := splitLedger(m.Body)
		copies[id] = append(copies[id], body)
	}
	accepted, cut := 0, 0
	for _, a := range flatten(rows) {
		got := copies[a.id]
		delete(copies, a.id)
		for _, body := range got {
			if !bytes.Equal(body, a.body) {
				t.Errorf("%s arrived changed: %d bytes, sent %d", a.id, len(body), len(a.body))
			}
		}
		switch {
		case strings.HasPrefix(a.reply, "250"):
			accepted++
			if len(got) != 1 {
				t.Errorf("%s: 250, and %d copies", a.id, len(got))
			}
		case !a.ended:
			cut++
			if len(got) != 0 {
				t.Errorf("%s: cut short, and %d copies", a.id, len(got))
			}
		default:
			t.Errorf("%s: the gate said %q", a.id, a.reply)
		}
	}
	for id := range copies {
		t.Errorf("%q arrived and was never sent", id)
	}
	if accepted == 0 || cut == 0 {
		t.Errorf("%d accepted, %d cut: the test did not test", accepted, cut)
	}
	if v := sink.Violations(); len(v) > 0 {
		t.Errorf("the next hop got what no client may send: %q", v)
	}
}

func flatten(rows [][]attempt) []attempt {
	var all []attempt
	for _, r := range rows {
		all = append(all, r...)
	}
	return all
}

// splitLedger finds the id and the body behind the trace fields.
func splitLedger(message []byte) (id string, body []byte) {
	i := bytes.Index(message, []byte("X-Ledger: "))
	if i < 0 {
		return string(message), nil
	}
	body = message[i:]
	id, _, _ = strings.Cut(string(body[len("X-Ledger: "):]), "\r\n")
	return id, body
}

// runClient sends n messages, on one connection as long as it lasts.
func runClient(addr string, number, n int) []attempt {
	rng := rand.New(rand.NewPCG(uint64(number), 42))
	var rows []attempt
	var c *ledgerClient
	for i := range n {
		a := attempt{id: fmt.Sprintf("%d-%d", number, i)}
		a.body = randomMessage(rng, a.id)
		if c == nil {
			c = newLedgerClient(addr)
		}
		wire := stuff(a.body)
		cut := len(wire)
		if rng.IntN(5) == 0 {
			cut = rng.IntN(len(wire))
		}
		a.ended = cut == len(wire)
		a.reply = c.try(wire[:cut], a.ended)
		if !a.ended || a.reply == "" || rng.IntN(4) == 0 {
			c.Close()
			c = nil
		}
		rows = append(rows, a)
	}
	if c != nil {
		c.Close()
	}
	return rows
}

// randomMessage has bytes of all values from 40 on, 8-bit ones among them, lines
// of any length, and many dots.
func randomMessage(rng *rand.Rand, id string) []byte {
	b := []byte("X-Ledger: " + id + "\r\n\r\n")
	for range rng.IntN(30) {
		length := rng.IntN(120)
		if rng.IntN(30) == 0 {
			length = rng.IntN(200_000)
		}
		for range length {
			c := byte(rng.IntN(256))
			if c < 40 {
				c = '.'
			}
			b = append(b, c)
		}
		b = append(b, '\r', '\n')
	}
	return b
}

// stuff is a message as it goes over the wire, its end included.
func stuff(body []byte) []byte {
	var b []byte
	for line := range bytes.Lines(body) {
		if line[0] == '.' {
			b = append(b, '.')
		}
		b = append(b, line...)
	}
	return append(b, ".\r\n"...)
}

// ledgerClient is a client outside the test's goroutine.
type ledgerClient struct{ *client }

func newLedgerClient(addr string) *ledgerClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	c := &ledgerClient{&client{Conn: conn, in: bufio.NewReader(conn)}}
	c.readReply()
	io.WriteString(conn, "EHLO client.example\r\n")
	c.readReply()
	return c
}

// try sends a message, or its beginning, and returns the reply to it.
func (c *ledgerClient) try(wire []byte, whole bool) string {
	if c == nil {
		return "no connection"
	}
	io.WriteString(c, "MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n")
	var reply string
	for range 3 {
		reply, _ = c.readReply()
	}
	if !strings.HasPrefix(reply, "354") {
		return reply
	}
	c.Write(wire)
	if !whole {
		return ""
	}
	reply, _ = c.readReply()
	return reply
}
