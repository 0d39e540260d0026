package nexthop

import (
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// TestLoginSlowReset: a server that takes its time for the RSET between two transactions
// of a login is asked whether it is there, and the login goes on.
func TestLoginSlowReset(t *testing.T) {
	asked := make(chan struct{})
	var once sync.Once
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Answer: func(c smtptest.Command) string {
		switch {
		case c.Conn > 1 && c.Verb() == "EHLO":
			once.Do(func() { close(asked) })
		case c.Conn == 1 && c.Verb() == "RSET":
			<-asked
		}
		return ""
	}})
	defer once.Do(func() { close(asked) }) // the sink waits for it
	timeouts := hasty
	timeouts.Greeting = time.Hour
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Timeouts: timeouts})
	login, reply, err := hop.Authenticate(t.Context(), testClient, "PLAIN eA==", func(wire.Reply) (string, error) { return "", errStop })
	if err != nil || reply.Code != codeLoggedIn {
		t.Fatal(reply, err)
	}
	defer login.Close()
	for range 2 {
		tx := login.Begin(Envelope{Client: testClient, From: "a@example.com"})
		if reply, err := tx.Rcpt(t.Context(), "b@example.net", nil); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
		tx.Abort()
	}
}
