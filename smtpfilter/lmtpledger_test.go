package smtpfilter_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
)

// The ledger of LMTP is kept for each recipient: the final reply that the client heard
// for him, and the copies that he got.

// lmtpRow is one message and its recipients.
type lmtpRow struct {
	id    string
	from  string
	body  []byte
	final map[string]string // by recipient: the reply to RCPT or to the message that ended it
	tries int
}

// TestLedgerLMTP has clients send messages to several recipients, and again to those who
// were deferred, through two gates that share a state directory as in a handover. The next
// hop refuses recipients at random, before and after the message, and cuts connections. In
// the end each recipient with 250 must have one copy, and the others none.
func TestLedgerLMTP(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Answer: whim()})
	path := filepath.Join(t.TempDir(), "lmtp.partial")
	var addrs []string
	for range 2 {
		hop, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", ProbeInterval: -1, Reuse: true, LMTP: true})
		if err != nil {
			t.Fatal(err)
		}
		store := partial.Open(path, partial.Options{})
		t.Cleanup(store.Close)
		g := newGate(t, gateOptions{target: hop, memory: store, wire: smtpfilter.Settings{TLS: smtptest.ServerTLS()}})
		addrs = append(addrs, g.addr)
	}
	const clients, each = 8, 8
	rows := make([][]*lmtpRow, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { rows[i] = runLMTPClient(addrs, i, each) })
	}
	wg.Wait()

	copies := lmtpCopies(t, sink)
	delivered, refused, tries := 0, 0, 0
	for _, lmtpRows := range rows {
		for _, r := range lmtpRows {
			tries += r.tries
			for to, reply := range r.final {
				n := copies[r.id+" "+to]
				delete(copies, r.id+" "+to)
				switch {
				case strings.HasPrefix(reply, "250") && n == 1:
					delivered++
				case strings.HasPrefix(reply, "5") && n == 0:
					refused++
				default:
					t.Errorf("%s to %s: the client heard %q, and there are %d copies", r.id, to, reply, n)
				}
			}
		}
	}
	for which, n := range copies {
		t.Errorf("%s: %d copies that nobody was told of", which, n)
	}
	if delivered == 0 || refused == 0 || tries <= clients*each {
		t.Errorf("%d delivered, %d refused, %d transactions: the test did not test", delivered, refused, tries)
	}
	if v := sink.Violations(); len(v) > 0 {
		t.Errorf("the next hop got what no client may send: %q", v)
	}
	t.Logf("%d messages in %d transactions: %d recipients have one copy, %d were refused and have none", clients*each, tries, delivered, refused)
}

// whim returns an Answer function that replies for recipients at random.
func whim() func(smtptest.Command) string {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(7, 7))
	return func(c smtptest.Command) string {
		mu.Lock()
		n := rng.IntN(100)
		mu.Unlock()
		address, _, _ := strings.Cut(strings.TrimPrefix(c.Line[strings.IndexByte(c.Line, ':')+1:], "<"), ">")
		switch afterMessage := strings.HasPrefix(c.Line, ". RCPT"); {
		case afterMessage && n < 15:
			return "452 4.2.2 <" + address + "> mailbox full"
		case afterMessage && n < 22:
			return "552 5.2.2 <" + address + "> Quota exceeded"
		case afterMessage && n < 26:
			return fmt.Sprintf("550 5.7.1 <%s> refused, rule %d", address, n)
		case afterMessage && n < 28:
			return smtptest.Close
		case afterMessage && n < 29:
			return "421 4.3.2 going down"
		case c.Verb() == "RCPT" && n < 5:
			return "450 4.2.1 <" + address + "> not now"
		case c.Verb() == "RCPT" && n < 7:
			return "550 5.1.1 <" + address + "> no such user"
		case c.Verb() == "DATA" && n < 3:
			return "451 4.3.0 not now"
		case c.Verb() == "MAIL" && n < 3:
			return smtptest.Reset
		}
		return ""
	}
}

// lmtpCopies counts the copies of each message and recipient. There is none for a
// recipient without a reply.
func lmtpCopies(t *testing.T, sink *smtptest.Sink) map[string]int {
	copies := map[string]int{}
	for _, m := range sink.Messages() {
		id, body := splitLedger(m.Body)
		sent, _ := ledgerBodies.Load(id)
		if sent == nil || !bytes.Equal(body, sent.([]byte)) {
			t.Errorf("%s arrived changed", id)
		}
		for i, reply := range m.Replies {
			if strings.HasPrefix(reply, "2") {
				to := strings.TrimSuffix(strings.TrimPrefix(m.Rcpts[i], "RCPT TO:<"), ">")
				copies[id+" "+to]++
			}
			if reply == smtptest.Close || strings.HasPrefix(reply, "421") {
				break
			}
		}
	}
	return copies
}

// ledgerBodies are the bodies that were sent, by id.
var ledgerBodies sync.Map

// runLMTPClient sends n messages, each until every recipient has a final reply. Other
// messages of the same senders to the same recipients are under way at the same time.
func runLMTPClient(addrs []string, number, n int) []*lmtpRow {
	rng := rand.New(rand.NewPCG(uint64(number), 4))
	var rows []*lmtpRow
	for i := range n {
		r := &lmtpRow{id: fmt.Sprintf("lmtp-%d-%d", number, i), from: fmt.Sprintf("s%d@example.com", rng.IntN(3)), final: map[string]string{}}
		for len(r.final) < 2+rng.IntN(6) {
			r.final[fmt.Sprintf("r%d@example.net", rng.IntN(12))] = ""
		}
		fields := "X-Ledger: " + r.id + "\r\n"
		if rng.IntN(3) > 0 {
			fields += "Message-ID: <" + r.id + "@example.com>\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n"
		}
		r.body = []byte(fields + "\r\nThe same text.\r\n.\r\n..\r\n")
		ledgerBodies.Store(r.id, r.body)
		rows = append(rows, r)
	}
	const patience = 400
	for round := 0; round < patience; round++ {
		open := 0
		for _, r := range rows {
			if waiting := r.waiting(); len(waiting) > 0 {
				open++
				r.try(addrs[rng.IntN(len(addrs))], waiting, rng)
			}
		}
		if open == 0 {
			break
		}
	}
	return rows
}

// waiting returns the recipients without a final reply, always in the same order.
func (r *lmtpRow) waiting() []string {
	var left []string
	for i := range 12 {
		to := fmt.Sprintf("r%d@example.net", i)
		if reply, ok := r.final[to]; ok && reply == "" {
			left = append(left, to)
		}
	}
	return left
}

// try sends the message once to the recipients without a final reply.
func (r *lmtpRow) try(addr string, waiting []string, rng *rand.Rand) {
	r.tries++
	c := newLedgerClient(addr, rng)
	if c == nil {
		return
	}
	defer c.Close()
	commands := "MAIL FROM:<" + r.from + ">\r\n"
	for _, to := range waiting {
		commands += "RCPT TO:<" + to + ">\r\n"
	}
	io.WriteString(c, commands)
	c.readReply()
	var accepted []string
	for _, to := range waiting {
		switch reply, _ := c.readReply(); {
		case strings.HasPrefix(reply, "250"):
			accepted = append(accepted, to)
		case strings.HasPrefix(reply, "5"):
			r.final[to] = reply
		}
	}
	if len(accepted) == 0 {
		return
	}
	// A relay that tries again may add a trace field, and send in another way.
	message := append(fmt.Appendf(nil, "Received: try %d\r\n", r.tries), r.body...)
	var reply string
	if rng.IntN(2) == 0 {
		reply = c.say(fmt.Sprintf("BDAT %d LAST\r\n%s", len(message), message), 1)
	} else if reply = c.say("DATA\r\n", 1); strings.HasPrefix(reply, "354") {
		reply = c.say(string(stuff(message)), 1)
	}
	if strings.HasPrefix(reply, "250") || strings.HasPrefix(reply, "5") {
		for _, to := range accepted {
			r.final[to] = reply
		}
	}
}
