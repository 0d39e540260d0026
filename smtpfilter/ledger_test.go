package smtpfilter_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// attempt is a row of the ledger: what one client tried, and what it was told
// last.
type attempt struct {
	id    string
	body  []byte // as the client means it, without dot-stuffing
	reply string // to the message, "" where the client went away or gave it up
	ended bool   // the end of the message was sent whole
}

// TestLedger has many clients send messages of random bytes, with DATA and in chunks, with
// TLS and without. Some disconnect in the middle or give their message up. For 250 there
// must be exactly one identical copy at the next hop, for a refusal none, and never a
// message that was cut short.
func TestLedger(t *testing.T) {
	for name, extension := range map[string]string{"chunks": "CHUNKING", "data": "VRFY"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extensions := append(slices.Clone(smtptest.DefaultExtensions), extension)
			settle(t, smtptest.NewSink(t, smtptest.Config{Extensions: extensions}))
		})
	}
}

// settle runs the clients and checks their rows.
func settle(t *testing.T, sink *smtptest.Sink) {
	g := newGate(t, gateOptions{nextHop: sink.Addr(), reuse: true, wire: smtpfilter.Settings{TLS: smtptest.ServerTLS()}})
	const clients, each = 16, 25
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
	for _, a := range slices.Concat(rows...) {
		got := copies[a.id]
		delete(copies, a.id)
		a.check(t, got)
		if a.ended {
			accepted++
		} else {
			cut++
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

// check compares a row with the copies at the next hop.
func (a *attempt) check(t *testing.T, copies [][]byte) {
	for _, body := range copies {
		if !bytes.Equal(body, a.body) {
			t.Errorf("%s arrived changed: %d bytes, sent %d", a.id, len(body), len(a.body))
		}
	}
	switch accepted := strings.HasPrefix(a.reply, "250"); {
	case a.ended && !accepted:
		t.Errorf("%s: the gate said %q", a.id, a.reply)
	case a.ended && len(copies) != 1:
		t.Errorf("%s: 250, and %d copies", a.id, len(copies))
	case !a.ended && len(copies) != 0:
		t.Errorf("%s: cut short, and %d copies", a.id, len(copies))
	}
}

// splitLedger returns the id and the body after the trace fields.
func splitLedger(message []byte) (id string, body []byte) {
	i := bytes.Index(message, []byte("X-Ledger: "))
	if i < 0 {
		return string(message), nil
	}
	body = message[i:]
	id, _, _ = strings.Cut(string(body[len("X-Ledger: "):]), "\r\n")
	return id, body
}
