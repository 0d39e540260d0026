package delivery

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// A ledger is the messages of one client and a gate that they pass.
type ledger struct {
	t      testing.TB
	dir    string            // has each message as a file, named by its id
	sent   map[string][]byte // messages, by id
	sink   *smtptest.Sink
	gate   *harness.Gate
	client string
}

// newLedger makes n messages, and starts a gate for them.
func newLedger(t testing.TB, client string, n int) *ledger {
	t.Helper()
	l := &ledger{t: t, dir: t.TempDir(), sent: map[string][]byte{}, sink: smtptest.NewSink(t), client: client}
	rng := rand.New(rand.NewPCG(3, uint64(len(client))))
	for i := range n {
		id := fmt.Sprintf("%s-%d", client, i)
		l.sent[id] = randomText(rng, id)
		if err := os.WriteFile(filepath.Join(l.dir, id), l.sent[id], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.gate = harness.StartGate(t, harness.Setup{NextHop: "smtp://" + l.sink.Addr()})
	return l
}

// randomText returns a message that mail programs send unchanged: its lines have up to 900
// bytes, 8-bit bytes among them, begin with dots, do not end in white space, and have no
// control bytes.
func randomText(rng *rand.Rand, id string) []byte {
	b := []byte("X-Ledger: " + id + "\r\nFrom: <a@example.com>\r\nTo: <b@example.net>\r\nSubject: ledger\r\n" +
		"Date: Fri, 20 Nov 2026 10:00:00 +0000\r\nMessage-ID: <" + id + "@example.com>\r\n\r\n")
	for range 1 + rng.IntN(30) {
		length := rng.IntN(100)
		if rng.IntN(10) == 0 {
			length = rng.IntN(900)
		}
		for range length {
			c := byte(rng.IntN(256))
			switch {
			case c <= ' ', c == 0x7f, rng.IntN(30) == 0:
				c = '.'
			case c == '\\', c == '%': // swaks replaces these
				c = '/'
			}
			b = append(b, c)
		}
		b = append(b, '\r', '\n')
	}
	return append(b, "end\r\n"...)
}

// files returns the files of the messages.
func (l *ledger) files() []string {
	var files []string
	for id := range l.sent {
		files = append(files, filepath.Join(l.dir, id))
	}
	return files
}

// settle compares the messages that arrived with those that were sent: each arrived
// once, and unchanged from its first field on.
func (l *ledger) settle() {
	l.t.Helper()
	l.gate.Stop()
	came := map[string]int{}
	for _, m := range l.sink.Messages() {
		_, body, ok := bytes.Cut(m.Body, []byte("X-Ledger: "))
		id, _, _ := bytes.Cut(body, []byte("\r\n"))
		want := l.sent[string(id)]
		if l.client == "swaks" {
			body = bytes.TrimSuffix(body, []byte("\r\n")) // added by swaks
		}
		if !ok || sha256.Sum256(append([]byte("X-Ledger: "), body...)) != sha256.Sum256(want) {
			l.t.Errorf("a message came changed: %q\nsent: %q", m.Body, want)
		}
		came[string(id)]++
	}
	for id := range l.sent {
		if came[id] != 1 {
			l.t.Errorf("%s came %d times", id, came[id])
		}
		delete(came, id)
	}
	for id := range came {
		l.t.Errorf("%q came and was never sent", id)
	}
	harness.CheckSink(l.t, l.sink)
	l.t.Logf("%d messages, %d connections to the next hop", len(l.sent), l.sink.Conns())
}

// TestLedgerMailers runs a program for each message.
func TestLedgerMailers(t *testing.T) {
	t.Parallel()
	for _, m := range mailers {
		if m.name == "python3" {
			continue // TestLedgerPython has it
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			program := harness.Program(t, m.name, m.pkg)
			l := newLedger(t, m.name, harness.Scale(harness.IfFull(20, 300)))
			files := make(chan string)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for file := range files {
						l.mail(program, m.args(l.gate.Addr, "a@example.com"), file)
					}
				})
			}
			for _, file := range l.files() {
				files <- file
			}
			close(files)
			wg.Wait()
			l.settle()
		})
	}
}

// mail sends a file with a program whose arguments name message.eml.
func (l *ledger) mail(program string, args []string, file string) {
	for i := range args {
		args[i] = strings.Replace(args[i], "message.eml", file, 1)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		l.t.Errorf("%s %s: %v\n%s", program, file, err, out)
	}
}

// TestLedgerNodemailer sends with nodemailer, which keeps its connections.
func TestLedgerNodemailer(t *testing.T) {
	t.Parallel()
	node := harness.Program(t, "node", "nodejs")
	module := harness.FetchedFile(t, "nodemailer/node_modules/nodemailer")
	l := newLedger(t, "nodemailer", harness.Scale(harness.IfFull(300, 1500)))
	host, port, _ := net.SplitHostPort(l.gate.Addr)
	out, errs, code := harness.Run(t, exec.Command(node, append([]string{"testdata/sender.js", module, host, port}, l.files()...)...))
	if code != 0 || errs != "" {
		t.Fatalf("sender.js: exit code %d\n%s", code, errs)
	}
	for line := range strings.Lines(out) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Code != 250 {
			t.Errorf("%s: %v", line, err)
		}
	}
	l.settle()
}

// TestLedgerPostfix has Postfix relay mail through the gate, as the server of a provider
// does.
func TestLedgerPostfix(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "postfix", harness.Scale(harness.IfFull(200, 1000)))
	p := harness.StartPostfix(t, harness.Everywhere,
		"relayhost = ["+host(l.gate.Addr)+"]:"+port(l.gate.Addr),
		"default_transport = smtp",
		"smtp_host_lookup = native",
		"smtp_dns_support_level = disabled",
		"smtp_helo_name = client.example",
	)
	l.submit(p.Addr)
	harness.SettledPostfix(t, p)
	l.settle()
}

// TestLedgerExim is TestLedgerPostfix with Exim.
func TestLedgerExim(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "exim", harness.Scale(harness.IfFull(100, 500)))
	s := harness.StartExim(t, harness.EximOptions{RelayFor: harness.Everywhere, SmartHost: l.gate.Addr})
	l.submit(s.Addr)
	settledExim(t, s)
	l.settle()
}

func host(addr string) string { h, _, _ := net.SplitHostPort(addr); return h }

func port(addr string) string { _, p, _ := net.SplitHostPort(addr); return p }

// submit gives all messages to a mail server that relays them: 10 on a connection,
// because Exim would leave more in its queue.
func (l *ledger) submit(addr string) {
	l.t.Helper()
	c := harness.MustDial(l.t, addr)
	n := 0
	for id, message := range l.sent {
		if n++; n > 10 {
			c.Want(l.t, "QUIT", "221")
			c, n = harness.MustDial(l.t, addr), 1
		}
		if reply, err := c.Send("a@example.com", "b@example.net", message); err != nil || !strings.HasPrefix(reply, "250") {
			l.t.Fatalf("%s: %q, %v", id, reply, err)
		}
	}
	c.Want(l.t, "QUIT", "221")
}

// TestSizes sends messages of many sizes. Up to the limit they arrive unchanged; larger
// ones are refused.
func TestSizes(t *testing.T) {
	t.Parallel()
	const limit = 300_000
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Keys: map[string]string{"listen": fmt.Sprintf("max_message_bytes = %d", limit)}})
	rng := rand.New(rand.NewPCG(4, 4))
	var sent []string
	c := harness.MustDial(t, g.Addr)
	for _, size := range sizes(limit) {
		message := randomBytes(rng, size)
		reply, err := c.Send("a@example.com", "b@example.net", message)
		if err != nil || !strings.HasPrefix(reply, "250") {
			t.Fatalf("%d bytes: %q, %v", size, reply, err)
		}
		sent = append(sent, fmt.Sprintf("%d %x", size, sha256.Sum256(message)))
	}
	for _, size := range []int{limit + 1, limit + 2, 2 * limit} {
		reply, err := harness.MustDial(t, g.Addr).Send("a@example.com", "b@example.net", randomBytes(rng, size))
		if err != nil || !strings.HasPrefix(reply, "552 5.3.4") {
			t.Errorf("%d bytes: %q, %v; want 552", size, reply, err)
		}
	}
	g.Stop()
	messages := sink.Messages()
	if len(messages) != len(sent) {
		t.Fatalf("%d messages came, %d were taken", len(messages), len(sent))
	}
	for i, m := range messages {
		body, _ := stripTrace(m.Body)
		if got := fmt.Sprintf("%d %x", len(body), sha256.Sum256(body)); got != sent[i] {
			t.Errorf("came %s, sent %s", got, sent[i])
		}
	}
}

// sizes returns the sizes of the messages: small ones, those near the sizes of buffers,
// and the limit. No message has one byte, since it ends in CRLF.
func sizes(limit int) []int {
	all := []int{0}
	for size := 2; size <= 300; size++ {
		all = append(all, size)
	}
	for size := 512; size < limit; size *= 2 {
		for around := -3; around <= 3; around++ {
			all = append(all, size+around)
		}
	}
	return append(all, limit-2, limit-1, limit)
}

// randomBytes returns a message of that size. It has all bytes but NUL, CR and LF, in
// lines of any length, many of which begin with dots.
func randomBytes(rng *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.IntN(256))
		if b[i] == 0 || b[i] == '\r' || b[i] == '\n' {
			b[i] = '.'
		}
	}
	for pos := 0; pos+4 < size; pos += 1 + rng.IntN(1+rng.IntN(2000)) {
		if pos > 2 && b[pos-1] != '\n' && b[pos-1] != '\r' {
			copy(b[pos:], "\r\n.")
		}
	}
	if size > 3 {
		copy(b, "\r\n") // no header: that has its own limit
	}
	if size > 1 {
		copy(b[size-2:], "\r\n")
	}
	return b
}
