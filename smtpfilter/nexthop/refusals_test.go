package nexthop

import (
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// TestRefusals has recipients accepted and refused, and wants the share of ten minutes, and a
// warning above 90% of at least 50.
func TestRefusals(t *testing.T) {
	ok, no, later := wire.NewReply(250, "2.1.5 ok"), wire.NewReply(550, "5.1.1 <b@example.net> nobody"), wire.NewReply(450, "4.2.0 greylisted")
	type replies struct {
		n     int
		reply wire.Reply
	}
	for name, c := range map[string]struct {
		replies           []replies
		later             time.Duration // from the first of them to the last
		after             time.Duration
		answered, refused int
		warning           string // a part; "": none
	}{
		"none":             {},
		"49 of 49":         {replies: []replies{{49, no}}, answered: 49, refused: 49},
		"45 of 50":         {replies: []replies{{45, no}, {5, ok}}, answered: 50, refused: 45},
		"46 of 50":         {replies: []replies{{4, ok}, {46, no}}, answered: 50, refused: 46, warning: `it refused 46 of 50 recipients in the last 10 minutes, the last with "550 5.1.1 <...> nobody"; its recipients may be lost, or one client guesses addresses`},
		"900 of 1000":      {replies: []replies{{900, no}, {100, ok}}, answered: 1000, refused: 900},
		"901 of 1000":      {replies: []replies{{901, no}, {99, ok}}, answered: 1000, refused: 901, warning: "901 of 1000"},
		"deferred":         {replies: []replies{{1000, later}}},
		"deferred, others": {replies: []replies{{1000, later}, {50, no}}, answered: 50, refused: 50, warning: "50 of 50"},
		"9 minutes":        {replies: []replies{{25, no}, {25, no}}, later: 9 * time.Minute, answered: 50, refused: 50, warning: "50 of 50"},
		"10 minutes":       {replies: []replies{{25, no}, {25, no}}, later: 10 * time.Minute, answered: 25, refused: 25},
		"before they end":  {replies: []replies{{50, no}}, after: 9*time.Minute + 59*time.Second, answered: 50, refused: 50, warning: "50 of 50"},
		"after they ended": {replies: []replies{{50, no}}, after: 10 * time.Minute},
		"after an hour":    {replies: []replies{{50, no}}, after: time.Hour},
	} {
		now := time.Unix(1_800_000_000, 0) // the beginning of a minute
		r := refusals{clock: func() time.Time { return now }}
		for i, replies := range c.replies {
			if i > 0 {
				now = now.Add(c.later)
			}
			for range replies.n {
				r.add(1, 1, replies.reply)
			}
		}
		now = now.Add(c.after)
		answered, refused, warning := r.lately()
		if answered != c.answered || refused != c.refused || (warning == "") != (c.warning == "") || !strings.Contains(warning, c.warning) {
			t.Errorf("%s: %d, %d, %q", name, answered, refused, warning)
		}
	}
}

// TestRefusalsOfServer counts what a server refuses, at each command: a refused MAIL once, and
// for LMTP each recipient.
func TestRefusalsOfServer(t *testing.T) {
	const no = "554 5.7.1 <a@example.com> no"
	for name, c := range map[string]struct {
		verb, reply string
		lmtp        bool
		answered    int
		refused     int
	}{
		"accepted":      {answered: 2},
		"at MAIL":       {verb: "MAIL", reply: no, answered: 1, refused: 1},
		"at RCPT":       {verb: "RCPT", reply: no, answered: 2, refused: 2},
		"one":           {verb: "RCPT TO:<b@example.net>", reply: no, answered: 2, refused: 1},
		"one later":     {verb: "RCPT TO:<b@example.net>", reply: "450 4.2.0 later", answered: 1},
		"at DATA":       {verb: "DATA", reply: no, answered: 2, refused: 2},
		"at the end":    {verb: ".", reply: no, answered: 2, refused: 2},
		"not yet":       {verb: ".", reply: "451 4.3.0 later", answered: 2},
		"LMTP":          {verb: ".", reply: no, lmtp: true, answered: 2, refused: 2},
		"LMTP, one":     {verb: ". RCPT TO:<b@example.net>", reply: no, lmtp: true, answered: 2, refused: 1},
		"the session's": {verb: "RCPT", reply: "503 5.5.1 MAIL first"},
	} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{}, LMTP: c.lmtp, Replies: map[string]string{c.verb: c.reply}})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), LMTP: c.lmtp})
		tx := hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
		for _, to := range []string{"b@example.net", "c@example.net"} {
			if _, err := tx.Rcpt(t.Context(), to, nil); err != nil && name != "the session's" {
				t.Fatal(name, err)
			}
		}
		if m, _, _ := tx.Data(t.Context(), Stuffed); m != nil {
			if _, err := m.Commit(t.Context()); err != nil {
				t.Fatal(name, err)
			}
		}
		tx.Abort()
		if s := States(hop)[0]; s.Recipients != c.answered || s.RecipientsRefused != c.refused || s.Warning != "" {
			t.Errorf("%s: %+v", name, s)
		}
		if last := hop.refusals.last; strings.Contains(last, "@") || c.refused > 0 && last != "554 5.7.1 <...> no" {
			t.Errorf("%s: %q", name, last)
		}
	}
}
