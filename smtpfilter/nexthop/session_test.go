package nexthop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// permanentSession are permanent replies about a session: of Postfix, Exim, OpenSMTPD, Dovecot
// and Sendmail.
var permanentSession = []string{
	"530 5.7.0 Must issue a STARTTLS command first",
	"530 5.5.1 Invalid command: Must issue an AUTH command first",
	"503 5.5.1 Error: need MAIL command",
	"503 Command refused, required Proxy negotiation failed",
	"502 5.5.1 Unknown command",
	"538 5.7.11 Encryption required for requested authentication mechanism",
}

// sendOne sends a message to one recipient, in a format, and returns the reply or the error
// that ends it.
func sendOne(target Target, f Format) (wire.Reply, error) {
	ctx := context.Background()
	tx := target.Begin(Envelope{Client: testClient, From: "a@example.com", ID: "x"})
	defer tx.Abort()
	if reply, err := tx.Rcpt(ctx, "b@example.net", nil); err != nil || !reply.Positive() {
		return reply, err
	}
	m, reply, err := tx.Data(ctx, f)
	if err != nil || m == nil {
		return reply, err
	}
	if _, err := m.Write([]byte("x: y\r\n\r\ntext\r\n")); err != nil {
		return wire.Reply{}, err
	}
	return m.Commit(ctx)
}

// sessionSink returns a sink that answers a command with a reply.
func sessionSink(t *testing.T, verb, reply string, lmtp bool) *smtptest.Sink {
	extensions := []string{"PIPELINING"}
	switch verb {
	case "XCLIENT":
		extensions = append(extensions, "XCLIENT ADDR")
	case "BDAT":
		extensions, verb = append(extensions, "CHUNKING"), "."
	}
	return smtptest.NewSink(t, smtptest.Config{Extensions: extensions, LMTP: lmtp, Replies: map[string]string{verb: reply}})
}

// TestSessionRefused has a server answer each command with each permanent reply about the gate's
// own session. None is the verdict on the client's mail; the next hop is down, with an ERROR that
// quotes the reply when it goes down; it is up again once the server accepts MAIL.
func TestSessionRefused(t *testing.T) {
	for _, verb := range []string{"XCLIENT", "MAIL", "RCPT", "DATA", "BDAT", "."} {
		for i, reply := range permanentSession {
			t.Run(fmt.Sprint(verb, i), func(t *testing.T) {
				format := Stuffed
				if verb == "BDAT" {
					format = Raw
				}
				sink, meter, log := sessionSink(t, verb, reply, false), &stepMeter{}, new(logText)
				hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Meter: meter, Reuse: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
				for range 2 {
					if got, err := sendOne(hop, format); !errors.Is(err, ErrSession) || errors.Is(err, ErrReplyLost) || !strings.Contains(err.Error(), reply) {
						t.Fatalf("reply %q, error %v", got, err)
					}
				}
				if len(sink.Messages()) > 0 {
					t.Error("delivered")
				}
				if s := States(hop)[0]; !s.Known || s.Up || s.MayPass() || s.Err == nil || !strings.Contains(s.Err.Error(), reply) || s.Recipients > 2 || s.RecipientsRefused > 0 {
					t.Errorf("state %+v", s)
				}
				if n := strings.Count(strings.Join(meter.seen, ", "), "failed session"); n != 2 {
					t.Errorf("counted %q", meter.seen)
				}
				errors := 1
				if verb == "DATA" || verb == "BDAT" || verb == "." {
					errors = 2 // each time it has accepted MAIL before
				}
				if log.count("level=ERROR") != errors || log.count(reply) == 0 {
					t.Errorf("log: %s", log.text.String())
				}
				key := map[string]string{"BDAT": "."}[verb]
				if key == "" {
					key = verb
				}
				sink.SetReply(key, "")
				if got, err := sendOne(hop, format); err != nil || !got.Positive() || !States(hop)[0].Up {
					t.Errorf("afterwards: reply %q, error %v, state %+v", got, err, States(hop)[0])
				}
			})
		}
	}
}

// TestSessionRefusedInGroup: the other member gets the message if the first one refuses the
// session before it has a recipient. In any case the first one is down.
func TestSessionRefusedInGroup(t *testing.T) {
	for _, verb := range []string{"XCLIENT", "MAIL", "RCPT", "DATA", "."} {
		for i, reply := range permanentSession {
			t.Run(fmt.Sprint(verb, i), func(t *testing.T) {
				first, second := sessionSink(t, verb, reply, false), smtptest.NewSink(t)
				a, b := newSMTP(t, SMTPConfig{Addr: first.Addr()}), newSMTP(t, SMTPConfig{Addr: second.Addr()})
				clock := newTestClock()
				g, log := testGroup(t, GroupConfig{clock: clock.clock()}, a, b)
				got, err := sendOne(g, Stuffed)
				late := verb == "DATA" || verb == "."
				if late != errors.Is(err, ErrSession) || !late && !got.Positive() {
					t.Errorf("reply %q, error %v", got, err)
				}
				if s := States(g); s[0].Up || !strings.Contains(log.String(), "next hop is down") || !strings.Contains(log.String(), reply) {
					t.Errorf("%+v\n%s", s, log)
				}
				if got, err := sendOne(g, Stuffed); err != nil || !got.Positive() {
					t.Errorf("the next message: reply %q, error %v", got, err)
				}
				if len(first.Messages()) != 0 || len(second.Messages()) == 0 {
					t.Errorf("%d and %d messages", len(first.Messages()), len(second.Messages()))
				}
			})
		}
	}
}

// TestSessionRefusedLMTP: a recipient whose reply is about the session gets the message another
// time, and the others have it.
func TestSessionRefusedLMTP(t *testing.T) {
	sink := sessionSink(t, ". RCPT TO:<b@example.net>", "503 5.5.1 DATA first", true)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), LMTP: true})
	if reply, err := sendOne(hop, Stuffed); err != nil || reply.Code != 451 || States(hop)[0].Up {
		t.Errorf("reply %q, error %v, state %+v", reply, err, States(hop)[0])
	}
}

// TestSessionRefusedChunk: a chunk before the last one is refused.
func TestSessionRefusedChunk(t *testing.T) {
	for _, extensions := range [][]string{{"CHUNKING"}, {"CHUNKING", "PIPELINING"}} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: extensions, Replies: map[string]string{"BDAT 131072": "503 5.5.1 not now"}})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
		_, m, err := beginAs(hop, Raw)
		if err != nil {
			t.Fatal(err)
		}
		line := []byte(strings.Repeat("x", 1022) + "\r\n")
		for range 400 {
			if _, err = m.Write(line); err != nil {
				break
			}
		}
		var early *ReplyError
		if !errors.Is(err, ErrSession) || errors.As(err, &early) || States(hop)[0].Up || len(sink.Messages()) > 0 {
			t.Errorf("error %v, state %+v", err, States(hop)[0])
		}
		m.Abort()
	}
}

// TestSessionRefusedReset: what a server says to RSET reaches nobody, and it is down.
func TestSessionRefusedReset(t *testing.T) {
	sink := sessionSink(t, "RSET", "530 5.7.0 Must issue a STARTTLS command first", false)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	tx, _, err := begin(hop, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	tx.Abort() // closes: a message was begun
	tx = hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
	if reply, err := tx.Rcpt(t.Context(), "b@example.net", nil); err != nil || !reply.Positive() {
		t.Fatal(reply, err)
	}
	tx.Abort()
	waitFor(t, "the refusal", func() bool { return !States(hop)[0].Up })
	if s := States(hop)[0]; s.Err == nil || !strings.Contains(s.Err.Error(), "RSET refused: 530 5.7.0") {
		t.Errorf("%+v", s)
	}
}

// TestNotSession has replies that only look like those of TestSessionRefused: they are about the
// mail, its parameters or its client, or temporary, and pass unchanged.
func TestNotSession(t *testing.T) {
	for _, c := range []struct {
		verb, reply string
		mayLogin    bool
	}{
		{"MAIL", "503 5.5.4 Unsupported option FOO", false},
		{"RCPT", "503 5.5.4 Unsupported option FOO", false},
		{"RCPT", "454 4.7.1 Relay access denied", false},
		{"RCPT", "550 5.1.1 nobody", false},
		{"MAIL", "530 5.7.0 Authentication required", true},
		{"RCPT", "530 5.7.0 Authentication required", true},
		{"DATA", "554 5.7.1 no", false},
		{".", "554 5.7.1 no", false},
	} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Replies: map[string]string{c.verb: c.reply}})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
		tx := hop.Begin(Envelope{Client: testClient, From: "a@example.com", MayLogin: c.mayLogin})
		reply, err := tx.Rcpt(t.Context(), "b@example.net", nil)
		if err == nil && reply.Positive() {
			var m Message
			if m, reply, err = tx.Data(t.Context(), Stuffed); m != nil {
				reply, err = m.Commit(t.Context())
			}
		}
		if err != nil || reply.String() != c.reply {
			t.Errorf("%+v: reply %q, error %v", c, reply, err)
		}
		if s := States(hop)[0]; s.Known && !s.Up {
			t.Errorf("%+v: %+v", c, s)
		}
		tx.Abort()
	}
}

// TestLoginFirst: without a client that may log in, and for TLS, a 530 of a server with AUTH is
// about the session.
func TestLoginFirst(t *testing.T) {
	for reply, mayLogin := range map[string]bool{"530 5.7.0 Authentication required": false, "530 5.7.0 Must issue a STARTTLS command first": true} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Replies: map[string]string{"MAIL": reply}})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
		tx := hop.Begin(Envelope{Client: testClient, From: "a@example.com", MayLogin: mayLogin})
		if got, err := tx.Rcpt(t.Context(), "b@example.net", nil); !errors.Is(err, ErrSession) {
			t.Errorf("%s: reply %q, error %v", reply, got, err)
		}
		// A probe cannot tell whether clients log in, and does not end what a client's mail has shown.
		if err := hop.Probe(t.Context()); States(hop)[0].Up || (err == nil) == mayLogin {
			t.Errorf("%s: probe: %v, %+v", reply, err, States(hop)[0])
		}
	}
}

// TestUnsureProbe: a 5xx to the probe of a gate that tells the server who its clients are says
// nothing about them.
func TestUnsureProbe(t *testing.T) {
	const refusal = "550 5.7.1 <>: not from you"
	for name, c := range map[string]struct {
		extensions []string
		proxy      int
		reply      string
		unsure     bool
	}{
		"XCLIENT":       {extensions: []string{"XCLIENT ADDR"}, reply: refusal, unsure: true},
		"XCLIENT, TLS":  {extensions: []string{"XCLIENT ADDR"}, reply: "530 5.7.0 Must issue a STARTTLS command first"},
		"XCLIENT, 4xx":  {extensions: []string{"XCLIENT ADDR"}, reply: "451 4.3.0 not now"},
		"login":         {extensions: []string{"AUTH PLAIN"}, reply: "530 5.7.0 Authentication required", unsure: true},
		"login, no":     {extensions: []string{"AUTH PLAIN"}, reply: refusal},
		"no identity":   {extensions: []string{}, reply: refusal},
		"login nowhere": {extensions: []string{}, reply: "530 5.7.0 Authentication required"},
	} {
		sink, log := smtptest.NewSink(t, smtptest.Config{Extensions: c.extensions, Replies: map[string]string{"MAIL FROM:<>": c.reply}}), new(logText)
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Logger: slog.New(slog.NewTextHandler(log, nil))})
		for range 2 {
			s := Check(t.Context(), hop, 0)[0]
			if s.Up || s.Known == c.unsure || s.MayPass() != c.unsure || (s.Err == nil) != c.unsure || (s.Unsure == c.reply) != c.unsure {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if n := log.count("not known"); n != map[bool]int{true: 1}[c.unsure] {
			t.Errorf("%s: %d lines:\n%s", name, n, log.text.String())
		}
		if reply, err := sendOne(hop, Stuffed); err != nil || !reply.Positive() {
			t.Errorf("%s: reply %q, error %v", name, reply, err)
		}
		if s := States(hop)[0]; !s.Up || s.Unsure != "" {
			t.Errorf("%s: after mail: %+v", name, s)
		}
	}
}

// TestQuote: a reply in a text is short printable ASCII without the addresses of its message.
func TestQuote(t *testing.T) {
	r := wire.NewReply(550, "5.1.1 <b@example.net>: unknown\x1b[31m\x80", strings.Repeat("x", 300))
	if got := quote(r); len(got) != 200 || !strings.HasPrefix(got, "550 5.1.1 <...>: unknown?[31m? / xxx") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	for text, want := range map[string]string{
		`5.1.1 <"b c"@example.net> no`: `550 5.1.1 <...> no`, "no B+x@Example.NET, sorry": "550 no ..., sorry", "@ alone": "550 @ alone",
	} {
		if got := quote(wire.NewReply(550, text)); got != want {
			t.Errorf("%q", got)
		}
	}
}
