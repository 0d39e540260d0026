package delivery

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// bytePlaces are the places of a byte in the commands of a session; %s is the byte. A
// session uses the usual command if a place names none.
var bytePlaces = []struct{ name, ehlo, mail, rcpt string }{
	{name: "HELO name", ehlo: "HELO client%s.example"},
	{name: "EHLO name", ehlo: "EHLO client%s.example"},
	{name: "MAIL local part", mail: "MAIL FROM:<a%sb@example.com>"},
	{name: "MAIL quoted local part", mail: `MAIL FROM:<"a%sb"@example.com>`},
	{name: "MAIL domain", mail: "MAIL FROM:<a@exam%sple.com>"},
	{name: "MAIL parameter name", mail: "MAIL FROM:<a@example.com> SI%sZE=1000"},
	{name: "MAIL parameter value", mail: "MAIL FROM:<a@example.com> BODY=8BIT%sMIME"},
	{name: "MAIL xtext", mail: "MAIL FROM:<a@example.com> ENVID=a%sb"},
	{name: "RCPT local part", rcpt: "RCPT TO:<a%sb@example.net>"},
	{name: "RCPT quoted local part", rcpt: `RCPT TO:<"a%sb"@example.net>`},
	{name: "RCPT domain", rcpt: "RCPT TO:<b@exam%sple.net>"},
	{name: "RCPT parameter name", rcpt: "RCPT TO:<b@example.net> NOT%sIFY=NEVER"},
	{name: "RCPT parameter value", rcpt: "RCPT TO:<b@example.net> NOTIFY=NEV%sER"},
	{name: "RCPT xtext", rcpt: "RCPT TO:<b@example.net> ORCPT=rfc822;a%sb@example.net"},
}

// TestBytes puts each byte value into every place of the commands of a session. Only
// printable bytes may reach the next hop, in commands and in trace fields.
func TestBytes(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
	var wg sync.WaitGroup
	for _, place := range bytePlaces {
		wg.Go(func() {
			for b := range 256 {
				c := string([]byte{byte(b)})
				fill := func(format, usual string) string {
					if format == "" {
						return usual
					}
					return fmt.Sprintf(format, c)
				}
				commands := []string{
					fill(place.ehlo, "EHLO client.example"),
					fill(place.mail, "MAIL FROM:<a@example.com>"),
					fill(place.rcpt, "RCPT TO:<b@example.net>"),
					"DATA",
				}
				if err := sendCommands(g.Addr, commands, "X-Ledger: sent\r\n\r\n.\r\n"); err != nil {
					t.Errorf("%s, byte %#02x: %v", place.name, b, err)
				}
			}
		})
	}
	wg.Wait()
	g.Stop()

	harness.CheckSink(t, sink)
	for _, c := range sink.Commands() {
		if pos := bytes.IndexFunc([]byte(c.Line), notPrintable); pos >= 0 {
			t.Errorf("byte %d of the command %q", pos, c.Line)
		}
	}
	messages := sink.Messages()
	for _, m := range messages {
		trace, _, _ := bytes.Cut(m.Body, []byte("X-Ledger"))
		trace = bytes.ReplaceAll(trace, []byte("\r\n\t"), nil) // unfold
		trace = bytes.ReplaceAll(trace, []byte("\r\n"), nil)
		if pos := bytes.IndexFunc(trace, notPrintable); pos >= 0 {
			t.Errorf("byte %d of the trace fields %q", pos, trace)
		}
	}
	if least := len(bytePlaces) * 30; len(messages) < least {
		t.Errorf("%d messages came, want %d at least: most printable bytes are good somewhere", len(messages), least)
	}
	t.Logf("%d sessions, %d messages", 256*len(bytePlaces), len(messages))
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

// sendCommands sends commands until one is refused, and then a message. It closes the
// connection without QUIT.
func sendCommands(addr string, commands []string, message string) error {
	c, err := harness.Connect(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Reply(); err != nil {
		return err
	}
	for _, line := range commands {
		reply, err := c.Ask(line)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if reply[0] > '3' {
			return nil
		}
	}
	if _, err := io.WriteString(c, message); err != nil {
		return err
	}
	reply, err := c.Reply()
	if err != nil || !strings.HasPrefix(reply, "250") {
		return fmt.Errorf("the message was answered with %q: %w", reply, err)
	}
	return nil
}
