package nexthop

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestLMTPSlowRecipients delays the reply for each recipient: Timeouts.Dot limits all of
// them together. Replies returns those that came.
func TestLMTPSlowRecipients(t *testing.T) {
	const recipients = 10
	hop := newSMTP(t, SMTPConfig{Addr: startSlowLMTP(t, recipients), LMTP: true, Timeouts: Timeouts{Dot: 2 * time.Second}})
	tx := hop.Begin(Envelope{From: "a@example.com"})
	defer tx.Abort()
	for i := range recipients {
		if reply, err := tx.Rcpt(t.Context(), fmt.Sprintf("%d@example.net", i), nil); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
	}
	m, _, err := tx.Data(t.Context(), Stuffed)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := m.Commit(t.Context())
	if !errors.Is(err, ErrReplyLost) {
		t.Errorf("%v, %v", reply, err)
	}
	if n := len(m.(EachReply).Replies()); n == recipients {
		t.Errorf("%d replies", n)
	}
}

// startSlowLMTP starts an LMTP server that takes all mail, and a second for each
// recipient of a message but the first. It ends with its first connection.
func startSlowLMTP(t *testing.T, recipients int) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-over })
	go func() {
		defer close(over)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "220 slow\r\n")
		inMessage := false
		for in := bufio.NewScanner(c); in.Scan(); {
			line := in.Text()
			switch {
			case inMessage && line == ".":
				for range recipients {
					if _, err := fmt.Fprint(c, "250 stored\r\n"); err != nil {
						return
					}
					time.Sleep(time.Second) // a server that is slow
				}
				inMessage = false
			case inMessage:
			case strings.HasPrefix(line, "DATA"):
				inMessage = true
				fmt.Fprint(c, "354 go\r\n")
			default:
				fmt.Fprint(c, "250 ok\r\n")
			}
		}
	}()
	return l.Addr().String()
}
