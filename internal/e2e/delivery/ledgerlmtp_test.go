package delivery

import (
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestLedgerLMTP has smtp-source send messages to five recipients each. Over LMTP each
// message arrives in one transaction, and every recipient has one copy.
func TestLedgerLMTP(t *testing.T) {
	t.Parallel()
	source := harness.Program(t, "smtp-source", "postfix")
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true})
	g := harness.StartGate(t, harness.Setup{NextHop: "lmtp://" + sink.Addr()})
	n := harness.Scale(harness.IfFull(500, 2000))
	const recipients = 5
	args := []string{"-M", "client.example", "-f", "a@example.com", "-t", "b@example.net", "-l", "1000",
		"-s", "10", "-m", strconv.Itoa(n), "-r", strconv.Itoa(recipients), g.Addr}
	// It ends with an error at the first unexpected reply.
	if out, errs, code := harness.Run(t, exec.Command(source, args...)); code != 0 || out+errs != "" {
		t.Errorf("smtp-source: exit code %d\n%s%s", code, out, errs)
	}
	g.Stop()

	copies := map[string]int{}
	for _, m := range sink.Messages() {
		id, _ := maskSource(m.Body)
		rcpts := slices.Compact(slices.Sorted(slices.Values(m.Rcpts)))
		if len(rcpts) != recipients {
			t.Errorf("%s came to %q in one transaction", id, m.Rcpts)
		}
		for _, to := range rcpts {
			copies[id+" "+to]++
		}
	}
	for which, times := range copies {
		if times != 1 {
			t.Errorf("%s: %d copies", which, times)
		}
	}
	if len(copies) != n*recipients {
		t.Errorf("%d recipients have a copy, want %d", len(copies), n*recipients)
	}
	harness.CheckSink(t, sink)
}
