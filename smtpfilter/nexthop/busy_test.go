package nexthop

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// TestBusyServer: a server without a free process greets nobody, and goes on answering on
// the connections that it has. A command that it takes its time for is waited for.
func TestBusyServer(t *testing.T) {
	full, answer := make(chan struct{}), make(chan struct{})
	var first, second sync.Once
	var checks atomic.Int32
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		switch {
		case c.Line == "RCPT TO:<slow@example.net>":
			<-answer
		case c.Conn > 2:
			if checks.Add(1) == 1 {
				first.Do(func() { close(full) })
			} else {
				second.Do(func() { close(answer) }) // the first check was in vain, and the wait goes on
			}
			return smtptest.Silence
		}
		return ""
	}})
	timeouts := hasty
	timeouts.Greeting = 2 * time.Second
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Timeouts: timeouts})
	other := hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
	defer other.Abort()
	if reply, err := other.Rcpt(t.Context(), "b@example.net", nil); err != nil || !reply.Positive() {
		t.Fatal(reply, err)
	}
	var answered sync.WaitGroup
	answered.Go(func() {
		<-full
		if reply, err := other.Rcpt(t.Context(), "c@example.net", nil); err != nil || !reply.Positive() {
			t.Error(reply, err)
		}
	})
	slow := hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
	defer slow.Abort()
	if reply, err := slow.Rcpt(t.Context(), "slow@example.net", nil); err != nil || !reply.Positive() {
		t.Error(reply, err)
		second.Do(func() { close(answer) })
	}
	answered.Wait()
	sink.CloseConns()
}

// TestWhatIsSilence checks that a server is alive whatever its reply is, and silent if a
// connection is refused, or accepted and closed, or accepted without a greeting.
func TestWhatIsSilence(t *testing.T) {
	for name, c := range map[string]struct {
		replies map[string]string
		tls     TLSMode
		silent  bool
	}{
		"fine":          {},
		"refuses":       {replies: map[string]string{"GREETING": "554 no"}},
		"421":           {replies: map[string]string{"GREETING": "421 busy"}},
		"nonsense":      {replies: map[string]string{"GREETING": "SSH-2.0-OpenSSH"}},
		"a loop":        {replies: map[string]string{"EHLO": "250-x\n250 XSPAMGATE one"}},
		"no TLS":        {tls: TLSImplicit},
		"cut":           {replies: map[string]string{"GREETING": smtptest.Close}, silent: true},
		"reset":         {replies: map[string]string{"GREETING": smtptest.Reset}, silent: true},
		"silent":        {replies: map[string]string{"GREETING": smtptest.Silence}, silent: true},
		"silent behind": {replies: map[string]string{"EHLO": smtptest.Silence}},
		"refused":       {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{Replies: c.replies})
			defer sink.CloseConns()
			timeouts := Timeouts{Suspect: time.Hour, Greeting: time.Second, Hello: time.Second, Connect: time.Second}
			if !c.silent {
				timeouts.Greeting, timeouts.Connect = time.Hour, time.Minute
			}
			addr := sink.Addr()
			if name == "refused" {
				addr = smtptest.Unreachable(t)
			}
			hop := newSMTP(t, SMTPConfig{Addr: addr, GateID: "one", TLS: TLSConfig{Mode: c.tls}, Timeouts: timeouts})
			if err := hop.checkAlive(t.Context()); (err != nil) != c.silent {
				t.Errorf("error %v", err)
			}
		})
	}
}
