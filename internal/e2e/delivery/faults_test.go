package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestClientsCut has clients close or reset the connection at any byte of a message.
// Each message that arrives at the next hop is whole.
func TestClientsCut(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})

	const clients = 8
	rows := make([][]cutRow, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { rows[i] = cutClient(g.Addr, i, harness.Scale(100)) })
	}
	wg.Wait()
	g.Stop()

	found := pythonCopies(t, sink.Messages())
	cut, whole := 0, 0
	for _, mine := range rows {
		for _, r := range mine {
			got := found[r.id]
			delete(found, r.id)
			switch {
			case r.err != nil:
				t.Errorf("%s: %v", r.id, r.err)
			case r.cut:
				cut++
				if len(got) != 0 {
					t.Errorf("%s was cut short, and %d copies came", r.id, len(got))
				}
			default:
				whole++
				if len(got) != 1 || got[0] != r.sum {
					t.Errorf("%s: copies %v, sent %s", r.id, got, r.sum)
				}
			}
		}
	}
	for id := range found {
		t.Errorf("%s came and was never sent", id)
	}
	harness.CheckSink(t, sink)
	t.Logf("%d cut, %d whole; the next hop saw the beginning of %d of the cut ones", cut, whole, len(sink.Undelivered()))
}

type cutRow struct {
	id, sum string
	cut     bool
	err     error // unexpected
}

// cutClient sends messages, each on its own connection. Three of four are cut after a
// random byte.
func cutClient(addr string, number, n int) []cutRow {
	rng := rand.New(rand.NewPCG(uint64(number), 2))
	var rows []cutRow
	for i := range n {
		id := fmt.Sprintf("cut-%d-%d", number, i)
		message := randomMessage(rng, id)
		sum := sha256.Sum256(message)
		r := cutRow{id: id, sum: hex.EncodeToString(sum[:]), cut: rng.IntN(4) > 0}
		r.err = r.send(rng, addr, harness.DotStuff(message))
		rows = append(rows, r)
	}
	return rows
}

func (r cutRow) send(rng *rand.Rand, addr string, wire []byte) error {
	c, err := harness.Dial(addr, "")
	if err != nil {
		return err
	}
	defer c.Close()
	for _, line := range []string{"MAIL FROM:<a@example.com>", "RCPT TO:<b@example.net>", "DATA"} {
		if reply, err := c.Ask(line); err != nil || reply[0] > '3' {
			return fmt.Errorf("%s: %q: %w", line, reply, err)
		}
	}
	if r.cut {
		wire = wire[:rng.IntN(len(wire))]
	}
	if _, err := c.Write(wire); err != nil {
		return err
	}
	if r.cut {
		if rng.IntN(2) == 0 {
			c.Conn.(*net.TCPConn).SetLinger(0) // Close resets the connection
		}
		return nil
	}
	if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "250") {
		return fmt.Errorf("the message was answered with %q: %w", reply, err)
	}
	return nil
}

// randomMessage returns a message like those of testdata/sender.py.
func randomMessage(rng *rand.Rand, id string) []byte {
	b := []byte("X-Ledger: " + id + "\r\nFrom: <a@example.com>\r\n\r\n")
	for range rng.IntN(30) {
		length := rng.IntN(120)
		if rng.IntN(20) == 0 {
			length = rng.IntN(200_000)
		}
		for range length {
			c := byte(rng.IntN(256))
			if c < 40 && c != '\t' {
				c = '.'
			}
			b = append(b, c)
		}
		b = append(b, '\r', '\n')
	}
	return b
}

// TestClientKilled kills smtp-source while it sends, again and again.
func TestClientKilled(t *testing.T) {
	t.Parallel()
	source := harness.Program(t, "smtp-source", "postfix")
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
	const last = 4 // the run with the largest messages
	for i := range harness.Scale(20) {
		args := append([]string{"-m", "1000000", "-s", "10"}, sourceArgs(last, g.Addr)...)
		cmd := exec.Command(source, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sink.WaitMessages(10 * (i + 1))
		cmd.Process.Kill()
		cmd.Wait()
	}
	g.Stop()
	found := newSourceCopies(t, source)
	for _, m := range sink.Messages() {
		found.add(m)
	}
	harness.CheckSink(t, sink)
	t.Logf("%d messages came whole, %d were begun", len(sink.Messages()), len(sink.Undelivered()))
}

// TestNextHopKilled has a next hop that dies in and after messages, while clients try
// again after each temporary failure. No message is lost, and one arrives twice only if
// the reply to it was lost.
func TestNextHopKilled(t *testing.T) {
	t.Parallel()
	harness.Program(t, "python3", "python3")
	sink := dyingSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
	n := harness.Scale(600)
	rows := runSender(t, g.Addr, "--messages", strconv.Itoa(n), "--threads", "6", "--seed", "2", "--retry")
	g.Stop()

	accounts := settle(t, rows)
	if len(accounts) != n {
		t.Errorf("%d messages, sent %d", len(accounts), n)
	}
	found := pythonCopies(t, sink.Messages())
	lost, twice := 0, 0
	for id, a := range accounts {
		lost += a.lost
		twice += max(0, len(found[id])-1)
		a.check(t, id, found[id])
		delete(found, id)
	}
	for id := range found {
		t.Errorf("%s came and was never sent", id)
	}
	if unknown := len(g.Records("no answer from the next hop", "outcome", "unknown")); unknown != lost {
		t.Errorf("the log has %d lines with outcome=unknown, the clients heard of %d", unknown, lost)
	}
	checkSinkCut(t, sink)
	t.Logf("%d messages in %d attempts; %d replies lost, %d copies too many for it", n, len(rows), lost, twice)
}

// dyingSink returns a Sink that cuts connections after its 354, in messages and instead
// of the reply to a message, and that refuses some messages.
func dyingSink(t testing.TB) *smtptest.Sink {
	t.Helper()
	var sink *smtptest.Sink
	started := make(chan struct{}) // closed once sink is set
	var data, dots atomic.Int64
	answer := func(c smtptest.Command) string {
		<-started
		switch {
		case c.Line == ".":
			switch n := dots.Add(1); {
			case n%17 == 0:
				return smtptest.Close // the message is kept, and the reply is not sent
			case n%19 == 0:
				return "451 4.3.0 Error: queue file write error"
			}
		case c.Verb() == "DATA":
			switch n := data.Add(1); {
			case n%30 == 0:
				sink.CloseConns() // at any point of their sessions
			case n%11 == 0:
				return "354 End data with <CR><LF>.<CR><LF>\n" + smtptest.Reset
			case n%13 == 0:
				return smtptest.Close
			}
		}
		return ""
	}
	sink = smtptest.NewSink(t, smtptest.Config{Answer: answer})
	close(started)
	return sink
}

// An account counts the replies to one message.
type account struct {
	sum      string
	accepted int // replies of 250
	lost     int // replies of 451 whose outcome is unknown
}

func settle(t testing.TB, rows []row) map[string]account {
	t.Helper()
	accounts := map[string]account{}
	for _, r := range rows {
		a := accounts[r.ID]
		a.sum = r.SHA256
		switch {
		case r.Code == 250:
			a.accepted++
		case strings.HasPrefix(r.Reply, "4.4.2 The mail server behind this gate did not confirm the message"):
			a.lost++
		case r.Code != 451:
			t.Errorf("%s: %d %s, want 451", r.ID, r.Code, r.Reply)
		}
		accounts[r.ID] = a
	}
	return accounts
}

// check compares the copies that arrived with the replies: one for each 250, and at most
// one more for each unknown outcome.
func (a account) check(t testing.TB, id string, copies []string) {
	t.Helper()
	if a.accepted != 1 {
		t.Errorf("%s: accepted %d times", id, a.accepted)
	}
	if len(copies) < a.accepted || len(copies) > a.accepted+a.lost {
		t.Errorf("%s: %d copies, accepted %d times, %d replies lost", id, len(copies), a.accepted, a.lost)
	}
	for _, sum := range copies {
		if sum != a.sum {
			t.Errorf("%s came changed", id)
		}
	}
}

// checkSinkCut is CheckSink for a Sink that has cut connections itself, so that a
// command may be incomplete.
func checkSinkCut(t testing.TB, sink *smtptest.Sink) {
	t.Helper()
	for _, v := range sink.Violations() {
		if !strings.Contains(v, "connection ended inside the command") {
			t.Errorf("the next hop got what no client may send: %s", v)
		}
	}
}
