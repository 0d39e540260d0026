package smtpfilter_test

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// formGate returns the options of a gate with lists of forms, whose next hop greets as
// sink.example.
func formGate(t *testing.T, rows ...string) (gateOptions, *smtptest.Sink) {
	sink := smtptest.NewSink(t)
	return gateOptions{
		nextHop: sink.Addr(),
		checker: mustJudge(t, rows...),
		policy:  smtpfilter.Policy{HeaderFields: []string{"From", "Sender"}, RecipientDomains: []string{"example.net"}},
	}, sink
}

// TestFormsInSession wants a session to judge forms with the recipient domains and the
// name in the next hop's greeting, and the log to show the reading that counted.
func TestFormsInSession(t *testing.T) {
	for _, c := range []struct{ row, header, want string }{
		{"form spammer@ reject", "From: spammer", "<spammer>"},
		{"form boss@example.net reject", "From: <boss>", "<boss@example.net>"},
		{"form boss@sink.example reject", "From: <boss>", "<boss@sink.example>"},
		{"form @listed.example reject", "Sender: Ann <spam%listed.example>", "<spam@listed.example>"},
		{"word smith@example.net reject", "From: Smith, Ann <a@b.example>", "<Smith@example.net>"},
		{"form smith@example.net reject", "From: Smith, Ann <a@b.example>", ""},
		{"header boss@example.net reject", "From: <boss>", ""},
	} {
		o, _ := formGate(t, c.row)
		lines := logged(t, o, 0, func(cl *client) {
			cl.toData("a@example.com")
			cl.send(c.header + "\r\n\r\nx\r\n.\r\n")
			reply, err := cl.readReply()
			if c.want == "" && !strings.HasPrefix(reply, "250 ") || c.want != "" && !strings.HasPrefix(reply, "550 5.7.1 "+c.want+" refused: ") {
				t.Errorf("%s, %q: %q, %v", c.row, c.header, reply, err)
			}
		})
		if c.want != "" && !strings.Contains(strings.Join(lines, "\n"), "sender="+strings.Trim(c.want, "<>")) ||
			c.want != "" && !strings.Contains(strings.Join(lines, "\n"), " form=") {
			t.Errorf("%s, %q: the log does not say which reading it was: %q", c.row, c.header, lines)
		}
	}
}

// TestTooManyAddresses wants a header with too many addresses to be refused, except for
// exempt recipients.
func TestTooManyAddresses(t *testing.T) {
	o, sink := formGate(t)
	o.policy.MaxAddresses = 100
	g := newGate(t, o)
	addresses := func(n int) string {
		var b strings.Builder
		b.WriteString("From: x@example.com")
		for i := range n - 1 {
			fmt.Fprintf(&b, ",\r\n a%d@example.com", i)
		}
		return b.String() + "\r\n\r\nx\r\n.\r\n"
	}
	for _, c := range []struct {
		n          int
		rcpt, want string
	}{
		{100, "b@example.net", "250 "},
		{101, "b@example.net", "554 5.6.0 Too many or too complex sender addresses in the header (limit 100); id "},
		{101, "postmaster@example.net", "250 "},
	} {
		before := len(sink.Messages())
		cl := dial(t, g.addr)
		cl.reply("220")
		cl.send("HELO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<" + c.rcpt + ">\r\n")
		for range 3 {
			cl.reply("250")
		}
		cl.send("DATA\r\n")
		cl.reply("354")
		cl.send(addresses(c.n))
		reply, err := cl.readReply()
		if err != nil || !strings.HasPrefix(reply, c.want) {
			t.Errorf("%d addresses to %s: %q, %v; want %q", c.n, c.rcpt, reply, err, c.want)
		}
		if delivered := len(sink.Messages()) > before; delivered != strings.HasPrefix(c.want, "250") {
			t.Errorf("%d addresses to %s: delivered is %t", c.n, c.rcpt, delivered)
		}
		cl.Close()
	}
}

// TestTagFields wants at most ten tag fields in a message, one for each entry.
func TestTagFields(t *testing.T) {
	var rows []string
	header := "From: a@b.example"
	for i := range 30 {
		rows = append(rows, fmt.Sprintf("header u%d@listed.example tag reason %d", i, i))
		header += fmt.Sprintf(",\r\n u%d@listed.example, u%d@listed.example", i, i)
	}
	o, sink := formGate(t, rows...)
	cl := dial(t, newGate(t, o).addr)
	cl.reply("220")
	cl.send("HELO client.example\r\n")
	cl.reply("250")
	cl.mailToData("a@example.com")
	cl.send(header + "\r\n\r\nx\r\n.\r\n")
	cl.reply("250")
	body := string(sink.Messages()[0].Body)
	if n := strings.Count(body, "X-Spamgate: "); n != 10 {
		t.Errorf("%d fields, want 10: %.2000q", n, body)
	}
	for i := range 10 {
		if !strings.Contains(body, fmt.Sprintf("reason=reason %d\r\n", i)) {
			t.Errorf("reason %d is missing: %.2000q", i, body)
		}
	}
}
