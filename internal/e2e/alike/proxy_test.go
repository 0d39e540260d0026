package alike

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// proxyClient sends messages through the proxy.
type proxyClient struct {
	addr string
	sink *smtptest.Sink
}

// send sends a message on a connection of its own.
func (p *proxyClient) send(t testing.TB, m mail) *heard {
	t.Helper()
	h := &heard{}
	conn, err := harness.DialFrom(p.addr, m.client)
	if err != nil {
		t.Fatal(err)
	}
	c := harness.NewClient(conn)
	defer c.Close()
	c.WantReply(t, "220")
	c.Want(t, "EHLO "+m.helo, "250")
	ask := func(line string) string {
		reply, err := c.Ask(line)
		if err != nil {
			t.Fatalf("%s: %s: %q, %v", m.what, line, reply, err)
		}
		return refusal(reply)
	}
	utf8 := ""
	if strings.ContainsFunc(m.from, func(r rune) bool { return r > 0x7e }) {
		utf8 = " SMTPUTF8"
	}
	if h.mail = ask("MAIL FROM:<" + m.from + ">" + utf8); h.mail != "" {
		return h
	}
	for _, rcpt := range m.rcpts {
		h.rcpts = append(h.rcpts, ask("RCPT TO:<"+rcpt+">"))
	}
	if !h.passes() {
		return h
	}
	ask("DATA")
	if _, err := c.Write(harness.DotStuff([]byte(m.text()))); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Reply()
	if err != nil {
		t.Fatalf("%s: %q, %v", m.what, reply, err)
	}
	h.end = refusal(reply)
	return h
}

// delivered adds to what was heard what became of these messages: their recipients and tags.
func (p *proxyClient) delivered(all map[string]*heard) {
	for _, m := range p.sink.Messages() {
		header, _, _ := bytes.Cut(m.Body, []byte("\r\n\r\n"))
		if h := all[heloIn(string(header))]; h != nil {
			for _, rcpt := range m.Rcpts {
				h.got = append(h.got, strings.TrimSuffix(strings.TrimPrefix(rcpt, "RCPT TO:<"), ">"))
			}
			trace, _, _ := strings.Cut(string(header), "Received: ")
			h.tags = tagsIn(trace)
		}
	}
}

// heloIn returns the client's name in the gate's Received field, which is the first.
func heloIn(header string) (name string) {
	_, rest, _ := strings.Cut(header, "Received: from ")
	fmt.Sscan(rest, &name)
	return name
}

// tagsIn returns the contents of the gate's fields.
func tagsIn(header string) []string {
	var all []string
	for _, f := range fields(header) {
		if f.name == smtpfilter.TagField {
			all = append(all, strings.TrimSpace(f.value))
		}
	}
	return all
}
