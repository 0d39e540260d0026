package e2e

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
)

// mailers are programs that people send mail with. Their commands send the file
// message.eml from a sender to you@example.net, and fail when they are told to.
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

// TestMailers sends a clean and a listed mail with each program.
func TestMailers(t *testing.T) {
	t.Parallel()
	for _, m := range mailers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			program := tool(t, m.name, m.pkg)
			sink := smtptest.NewSink(t)
			g := startGate(t, setup{nextHop: "smtp://" + sink.Addr()})
			message := letter("a@example.com", m.name) + ".\r\n..dots\r\n"
			writeFile(t, g.dir+"/message.eml", message)

			send := func(from string) (output string, code int) {
				cmd := exec.Command(program, m.args(g.addr, from)...)
				cmd.Dir = g.dir
				out, errs, code := run(t, cmd)
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
			g.waitRecord("accepted", "message_id", "<"+m.name+"@example.com>", "helo", "client.example")
			g.waitRecord("refused", "list", "blocked", "action", "reject", "identity", "envelope")
			checkSink(t, sink)
		})
	}
}
