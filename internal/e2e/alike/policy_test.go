package alike

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter"
)

// policyClient asks as Postfix's smtpd does.
type policyClient struct {
	conn net.Conn
	r    *bufio.Reader
	n    int
}

func dialPolicy(t testing.TB, addr string) *policyClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &policyClient{conn: conn, r: bufio.NewReader(conn)}
}

// send asks about each recipient of a message.
func (p *policyClient) send(t testing.TB, m mail) *heard {
	t.Helper()
	h := &heard{}
	p.n++
	for _, rcpt := range m.rcpts {
		fmt.Fprintf(p.conn, "request=smtpd_access_policy\nprotocol_state=RCPT\nprotocol_name=ESMTP\nclient_address=%s\n"+
			"client_name=localhost\nclient_port=4711\nhelo_name=%s\nsender=%s\nrecipient=%s\nrecipient_count=0\nqueue_id=\ninstance=%x.5.%d\n\n",
			cmp.Or(m.client, "127.0.0.1"), m.helo, m.from, rcpt, p.n, p.n)
		action := p.answer(t, m)
		verb, text, _ := strings.Cut(action, " ")
		answer := ""
		switch verb {
		case "DUNNO":
			h.got = append(h.got, rcpt)
		case "PREPEND":
			value, ok := strings.CutPrefix(text, smtpfilter.TagField+": ")
			if !ok {
				t.Errorf("%s: %q", m.what, action)
			}
			h.tags, h.got = append(h.tags, value), append(h.got, rcpt)
		case "DEFER_IF_PERMIT":
			answer = "451 " + text
		default:
			answer = action
		}
		h.rcpts = append(h.rcpts, refusal(answer))
	}
	return h
}

// answer reads an answer and returns its action.
func (p *policyClient) answer(t testing.TB, m mail) string {
	t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
	line, err := p.r.ReadString('\n')
	action, ok := strings.CutPrefix(line, "action=")
	if err != nil || !ok {
		t.Fatalf("%s: from <%s>: %q, %v", m.what, m.from, line, err)
	}
	if end, err := p.r.ReadString('\n'); err != nil || end != "\n" {
		t.Fatalf("%s: after the action comes %q, %v", m.what, end, err)
	}
	return strings.TrimSuffix(action, "\n")
}
