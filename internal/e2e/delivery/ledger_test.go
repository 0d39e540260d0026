package delivery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// The ledger is 20,000 messages from seven clients, some of them in ledgersenders_test.go. Each
// message that was answered with 250 is at the next hop exactly once and unchanged. If
// FullEnv is not set, the ledger has about a third as many messages.

// sourceRuns are the calls of smtp-source: messages, parallel sessions, payload in
// bytes, and whether a session sends more than one message.
var sourceRuns = []struct {
	messages, sessions, payload int
	keep                        bool
}{
	{harness.IfFull(1000, 5700), 20, 1000, false},
	{harness.IfFull(1000, 5700), 20, 4096, true},
	{1000, 50, 1, false},
	{800, 2, 20_000, true},
	{200, 10, 200_000, false},
}

// sourceArgs returns the arguments of smtp-source for a run.
func sourceArgs(run int, addr string) []string {
	r := sourceRuns[run]
	args := []string{
		"-M", "client.example",
		"-f", fmt.Sprintf("run%d@example.com", run),
		"-t", "b@example.net",
		"-l", strconv.Itoa(r.payload),
	}
	if r.keep {
		args = append(args, "-d")
	}
	return append(args, addr)
}

func TestLedgerSource(t *testing.T) {
	t.Parallel()
	source := harness.Program(t, "smtp-source", "postfix")
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
	total := 0
	for i, r := range sourceRuns {
		n := harness.Scale(r.messages)
		total += n
		args := append([]string{"-m", strconv.Itoa(n), "-s", strconv.Itoa(r.sessions)}, sourceArgs(i, g.Addr)...)
		// It ends with an error at the first unexpected reply.
		if out, errs, code := harness.Run(t, exec.Command(source, args...)); code != 0 || out+errs != "" {
			t.Errorf("smtp-source %q: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	g.Stop()

	found := newSourceCopies(t, source)
	for _, m := range sink.Messages() {
		found.add(m)
	}
	for i, r := range sourceRuns {
		if got := len(found.ids[i]); got != harness.Scale(r.messages) {
			t.Errorf("run %d: %d different messages, sent %d", i, got, harness.Scale(r.messages))
		}
	}
	if n := len(g.Records("accepted")); n != total {
		t.Errorf("%d lines in the log say accepted, want one for each of %d messages", n, total)
	}
	harness.CheckSink(t, sink)
	t.Logf("%d messages, %d connections to the next hop", total, sink.Conns())
}

// sourceCopies are the messages of smtp-source that have arrived at the next hop.
type sourceCopies struct {
	t         testing.TB
	reference []string         // by run: a message that did not pass the gate, masked
	ids       []map[string]int // by run: copies of each Message-ID
}

// newSourceCopies gets the reference messages.
func newSourceCopies(t testing.TB, source string) *sourceCopies {
	t.Helper()
	c := &sourceCopies{t: t}
	sink := smtptest.NewSink(t)
	for i := range sourceRuns {
		if _, errs, code := harness.Run(t, exec.Command(source, sourceArgs(i, sink.Addr())...)); code != 0 {
			t.Fatalf("smtp-source: exit code %d\n%s", code, errs)
		}
		_, masked := maskSource(sink.WaitMessages(i + 1)[i].Body)
		c.reference = append(c.reference, masked)
		c.ids = append(c.ids, map[string]int{})
	}
	return c
}

var (
	sourceID   = regexp.MustCompile(`(?m)^Message-Id: (<[^>\r\n]+>)`)
	sourceDate = regexp.MustCompile(`(?m)^Date: [^\r\n]+`)
	sourceFrom = regexp.MustCompile(`^MAIL FROM:<run(\d+)@example\.com>`)
)

// maskSource replaces the parts of a message that differ from message to message, and
// returns its Message-ID.
func maskSource(body []byte) (id, masked string) {
	header, payload, _ := bytes.Cut(body, []byte("\r\n\r\n"))
	if m := sourceID.FindSubmatch(header); m != nil {
		id = string(m[1])
	}
	header = sourceID.ReplaceAll(header, []byte("Message-Id: *"))
	header = sourceDate.ReplaceAll(header, []byte("Date: *"))
	return id, string(header) + "\r\n\r\n" + string(payload)
}

// add checks one copy.
func (c *sourceCopies) add(m smtptest.Message) {
	c.t.Helper()
	from := sourceFrom.FindStringSubmatch(m.Mail)
	if from == nil {
		c.t.Errorf("a message came with %q", m.Mail)
		return
	}
	run, _ := strconv.Atoi(from[1])
	body, ok := stripTrace(m.Body)
	id, masked := maskSource(body)
	if !ok || id == "" || masked != c.reference[run] {
		c.t.Errorf("run %d: a message came changed: %d bytes\n%.500q", run, len(body), m.Body)
		return
	}
	if c.ids[run][id]++; c.ids[run][id] > 1 {
		c.t.Errorf("run %d: %s came %d times", run, id, c.ids[run][id])
	}
}

var gateTrace = regexp.MustCompile(`^Received: from client\.example \((?:[^ ()]+ )?\[127\.0\.0\.1\]\)\r\n\tby gate\.example with E?SMTP id [A-Z2-7]{12};\r\n\t[^\r\n]*\r\n`)

// stripTrace removes the gate's trace field.
func stripTrace(message []byte) (rest []byte, ok bool) {
	positions := gateTrace.FindIndex(message)
	if positions == nil {
		return message, false
	}
	return message[positions[1]:], true
}

func TestLedgerPython(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
	rows := runSender(t, g.Addr, "--messages", strconv.Itoa(harness.Scale(3000)), "--threads", "6")
	g.Stop()

	if len(rows) != harness.Scale(3000) {
		t.Errorf("%d rows, sent %d", len(rows), harness.Scale(3000))
	}
	found := pythonCopies(t, sink.Messages())
	for _, r := range rows {
		if r.Code != 250 {
			t.Errorf("%s: %d %s", r.ID, r.Code, r.Reply)
		}
		if got := found[r.ID]; len(got) != 1 || got[0] != r.SHA256 {
			t.Errorf("%s: %d copies, with %v, sent %s", r.ID, len(got), got, r.SHA256)
		}
		delete(found, r.ID)
	}
	for id := range found {
		t.Errorf("%s came and was never sent", id)
	}
	harness.CheckSink(t, sink)
}

// A row is a line of the ledger that sender.py keeps.
type row struct {
	ID      string `json:"id"`
	SHA256  string `json:"sha256"`
	Attempt int    `json:"attempt"`
	Code    int    `json:"code"`
	Reply   string `json:"reply"`
}

// runSender runs testdata/sender.py and returns its ledger.
func runSender(t testing.TB, addr string, args ...string) []row {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	python := harness.Program(t, "python3", "python3")
	out, errs, code := harness.Run(t, exec.Command(python, append([]string{"testdata/sender.py", host, port}, args...)...))
	if code != 0 || errs != "" {
		t.Fatalf("sender.py: exit code %d\n%s", code, errs)
	}
	var rows []row
	for line := range strings.Lines(out) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("sender.py: %q: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}

var ledgerID = regexp.MustCompile(`^X-Ledger: ([^\r\n]+)\r\n`)

// pythonCopies returns the checksums of the copies of each message, without the trace
// field.
func pythonCopies(t testing.TB, messages []smtptest.Message) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, m := range messages {
		body, ok := stripTrace(m.Body)
		id := ledgerID.FindSubmatch(body)
		if !ok || id == nil {
			t.Errorf("a message came changed: %.500q", m.Body)
			continue
		}
		sum := sha256.Sum256(body)
		found[string(id[1])] = append(found[string(id[1])], hex.EncodeToString(sum[:]))
	}
	return found
}
