package e2e

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

	"spamgate/internal/smtptest"
)

// TestClientsCut sends messages that end anywhere: with the client's connection
// closed or reset. Whatever comes to the next hop comes whole.
func TestClientsCut(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr()})

	const clients = 8
	rows := make([][]cutRow, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { rows[i] = cutClient(g.addr, i, scale(100)) })
	}
	wg.Wait()
	g.stop()

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
	checkSink(t, sink)
	t.Logf("%d cut, %d whole; the next hop saw the beginning of %d of the cut ones", cut, whole, len(sink.Undelivered()))
}

type cutRow struct {
	id, sum string
	cut     bool
	err     error // anything that ought not to be
}

// cutClient sends messages, each on its own connection. Three of four end too
// early: any byte may be the last.
func cutClient(addr string, number, n int) []cutRow {
	rng := rand.New(rand.NewPCG(uint64(number), 2))
	var rows []cutRow
	for i := range n {
		id := fmt.Sprintf("cut-%d-%d", number, i)
		message := randomMessage(rng, id)
		sum := sha256.Sum256(message)
		r := cutRow{id: id, sum: hex.EncodeToString(sum[:]), cut: rng.IntN(4) > 0}
		r.err = r.send(rng, addr, stuff(message))
		rows = append(rows, r)
	}
	return rows
}

func (r cutRow) send(rng *rand.Rand, addr string, wire []byte) error {
	c, err := dial(addr, "")
	if err != nil {
		return err
	}
	defer c.Close()
	for _, line := range []string{"MAIL FROM:<a@example.com>", "RCPT TO:<b@example.net>", "DATA"} {
		if reply, err := c.ask(line); err != nil || reply[0] > '3' {
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
			c.Conn.(*net.TCPConn).SetLinger(0) // the Close becomes a RST
		}
		return nil
	}
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "250") {
		return fmt.Errorf("the message was answered with %q: %w", reply, err)
	}
	return nil
}

// randomMessage is what testdata/sender.py sends, too.
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

// TestClientKilled kills smtp-source in the middle of its work, again and again.
func TestClientKilled(t *testing.T) {
	t.Parallel()
	source := tool(t, "smtp-source", "postfix")
	sink := smtptest.NewSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr()})
	const last = 4 // the run with the largest messages
	for i := range scale(20) {
		args := append([]string{"-m", "1000000", "-s", "10"}, sourceArgs(last, g.addr)...)
		cmd := exec.Command(source, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sink.WaitMessages(10 * (i + 1))
		cmd.Process.Kill()
		cmd.Wait()
	}
	g.stop()
	found := newSourceCopies(t, source)
	for _, m := range sink.Messages() {
		found.add(m)
	}
	checkSink(t, sink)
	t.Logf("%d messages came whole, %d were begun", len(sink.Messages()), len(sink.Undelivered()))
}

// TestNextHopKilled has a next hop that dies in the middle of messages, and
// after them, while clients try again whenever they are told to. No message is
// lost, and none comes twice but where the reply to it got lost on the way.
func TestNextHopKilled(t *testing.T) {
	t.Parallel()
	tool(t, "python3", "python3")
	sink := dyingSink(t)
	g := startGate(t, setup{nextHop: "smtp://" + sink.Addr()})
	n := scale(600)
	rows := runSender(t, g.addr, "--messages", strconv.Itoa(n), "--threads", "6", "--seed", "2", "--retry")
	g.stop()

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
	if unknown := len(g.records("no answer from the next hop", "outcome", "unknown")); unknown != lost {
		t.Errorf("the log has %d lines with outcome=unknown, the clients heard of %d", unknown, lost)
	}
	checkSinkCut(t, sink)
	t.Logf("%d messages in %d attempts; %d replies lost, %d copies too many for it", n, len(rows), lost, twice)
}

// dyingSink is a Sink that cuts connections at DATA, behind its 354, in the
// middle of messages and in place of the reply to them, and refuses some.
func dyingSink(t testing.TB) *smtptest.Sink {
	t.Helper()
	var sink *smtptest.Sink
	started := make(chan struct{}) // sink is set
	var data, dots atomic.Int64
	answer := func(c smtptest.Command) string {
		<-started
		switch {
		case c.Line == ".":
			switch n := dots.Add(1); {
			case n%17 == 0:
				return smtptest.Close // the message is taken, and nobody told
			case n%19 == 0:
				return "451 4.3.0 Error: queue file write error"
			}
		case c.Verb() == "DATA":
			switch n := data.Add(1); {
			case n%30 == 0:
				sink.CloseConns() // all of them, wherever they are
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

// account sums up what a client has heard of one message.
type account struct {
	sum      string
	accepted int // answered with 250
	lost     int // answered with 451, "may or may not be there"
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

// check compares with the checksums of the copies that came: as many as were
// accepted, and at most one more for each lost reply.
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

// checkSinkCut is checkSink where the Sink itself has cut connections: a command
// may have been on its way.
func checkSinkCut(t testing.TB, sink *smtptest.Sink) {
	t.Helper()
	for _, v := range sink.Violations() {
		if !strings.Contains(v, "connection ended inside the command") {
			t.Errorf("the next hop got what no client may send: %s", v)
		}
	}
}
