package delivery

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// mailers are programs that people send mail with. Their commands send the file
// message.eml to you@example.net, and fail if the server refuses it.
var mailers = []struct {
	name, pkg string
	args      func(addr, from string) []string
}{
	{"swaks", "swaks", func(addr, from string) []string {
		return []string{"--server", addr, "--from", from, "--to", "you@example.net", "--ehlo", "client.example", "--data", "@message.eml"}
	}},
	{"curl", "curl", func(addr, from string) []string {
		return []string{"--silent", "--show-error", "--verbose", "--url", "smtp://" + addr + "/client.example",
			"--mail-from", from, "--mail-rcpt", "you@example.net", "--upload-file", "message.eml"}
	}},
	{"python3", "python3", func(addr, from string) []string {
		host, port, _ := net.SplitHostPort(addr)
		return []string{"-c", `
import smtplib, sys
host, port, sender = sys.argv[1:]
with smtplib.SMTP(host, int(port), "client.example") as s:
    s.sendmail(sender, ["you@example.net"], open("message.eml", "rb").read())
`, host, port, from}
	}},
}

// TestMailers sends a clean and a listed message with each program.
func TestMailers(t *testing.T) {
	t.Parallel()
	for _, m := range mailers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			program := harness.Program(t, m.name, m.pkg)
			sink := smtptest.NewSink(t)
			g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
			message := harness.SmallMessage("a@example.com", m.name) + ".\r\n..dots\r\n"
			harness.WriteFile(t, g.Dir+"/message.eml", message)

			send := func(from string) (output string, code int) {
				cmd := exec.Command(program, m.args(g.Addr, from)...)
				cmd.Dir = g.Dir
				out, errs, code := harness.Run(t, cmd)
				return out + errs, code
			}
			if out, code := send("a@example.com"); code != 0 {
				t.Errorf("clean mail: exit code %d\n%s", code, out)
			}
			out, code := send("x@spam.example")
			if code == 0 || !strings.Contains(out, "refused: list blocked (unsolicited mail); id ") {
				t.Errorf("listed mail: exit code %d, want an error and the reason\n%s", code, out)
			}

			got := sink.Messages()
			if len(got) != 1 {
				t.Fatalf("%d messages at the next hop, want 1", len(got))
			}
			if body, ok := stripTrace(got[0].Body); !ok || strings.TrimRight(string(body), "\r\n") != strings.TrimRight(message, "\r\n") {
				t.Errorf("the message arrived changed:\n%q", got[0].Body)
			}
			if want := "MAIL FROM:<a@example.com>"; !strings.HasPrefix(got[0].Mail, want) {
				t.Errorf("the next hop was told %q", got[0].Mail)
			}
			g.WaitRecord("accepted", "message_id", "<"+m.name+"@example.com>", "helo", "client.example")
			g.WaitRecord("refused", "list", "blocked", "action", "reject", "identity", "envelope")
			harness.CheckSink(t, sink)
		})
	}
}
