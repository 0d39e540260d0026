package nexthop

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/smtptest"
)

// A lockedBuffer is written to by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestSourceLogged delivers ten messages to servers that offer SOURCE, refuse it, or
// do not offer it: the log tells once what that means, and refusals of other
// attributes once each. A Postfix on this machine is a warning, others are not.
func TestSourceLogged(t *testing.T) {
	refuse := func(attributes ...string) func(smtptest.Command) string {
		return func(c smtptest.Command) string {
			for _, a := range attributes {
				if strings.HasPrefix(c.Line, "XFORWARD "+a+"=") {
					return "501 5.5.4 Bad " + a + " syntax"
				}
			}
			return ""
		}
	}
	const postfix, exim = "220 sink.example ESMTP Postfix (Debian)", "220 sink.example ESMTP Exim 4.96"
	for _, c := range []struct {
		name     string
		offers   string
		greeting string
		answer   func(smtptest.Command) string
		config   SMTPConfig

		want     string // level of the line about SOURCE, "" for none
		refusals int    // warnings of other attributes
	}{
		{name: "offered", offers: "XFORWARD NAME ADDR SOURCE", greeting: postfix},
		{name: "offered, nothing else told", offers: "XFORWARD NAME ADDR SOURCE", greeting: postfix, config: SMTPConfig{Identity: IdentityNone}},
		{name: "refused", offers: "XFORWARD NAME ADDR SOURCE", greeting: postfix, answer: refuse("SOURCE"), want: "WARN"},
		{name: "others refused", offers: "XFORWARD NAME ADDR SOURCE", greeting: postfix, answer: refuse("ADDR", "NAME"), refusals: 2},
		{name: "all refused", offers: "XFORWARD NAME ADDR SOURCE", greeting: postfix, answer: refuse("ADDR", "NAME", "SOURCE"), want: "WARN", refusals: 2},
		{name: "not offered", offers: "XFORWARD NAME ADDR", greeting: postfix, want: "WARN"},
		{name: "no XFORWARD", offers: "XCLIENT ADDR", greeting: postfix, want: "WARN"},
		{name: "another server", offers: "SIZE", greeting: exim, want: "INFO"},
		{name: "LMTP", offers: "SIZE", greeting: exim, config: SMTPConfig{LMTP: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{
				Extensions: []string{"PIPELINING", c.offers},
				LMTP:       c.config.LMTP,
				Answer: func(command smtptest.Command) string {
					if command.Line == "GREETING" {
						return c.greeting
					}
					if c.answer != nil {
						return c.answer(command)
					}
					return ""
				},
			})
			var log lockedBuffer
			config := c.config
			config.Addr, config.Reuse, config.Logger = sink.Addr(), true, slog.New(slog.NewTextHandler(&log, nil))
			hop := newSMTP(t, config)
			for i := range 10 {
				if reply, err := deliver(hop, "a@example.com", fmt.Appendf(nil, "Subject: %d\r\n", i), whole); err != nil || !reply.Positive() {
					t.Fatalf("%v, %v", reply, err)
				}
			}
			about := linesWith(log.String(), "cannot be told that mail comes from other machines")
			switch {
			case c.want == "" && about == nil:
			case len(about) == 1 && c.want != "" && strings.Contains(about[0], "level="+c.want):
			default:
				t.Errorf("want one line of level %q: %q", c.want, about)
			}
			if got := linesWith(log.String(), "its log lacks these attributes"); len(got) != c.refusals {
				t.Errorf("want %d lines about other attributes: %q", c.refusals, got)
			}
		})
	}
}

// linesWith returns the lines that have a text.
func linesWith(s, text string) []string {
	var found []string
	for line := range strings.Lines(s) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
