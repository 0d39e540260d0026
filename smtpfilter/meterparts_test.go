package smtpfilter_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// TestMeterParts counts recipients, logins and limits that were reached, each with every
// outcome.
func TestMeterParts(t *testing.T) {
	const from, rcpt, again = "MAIL FROM:<a@example.com>", "RCPT TO:<b@example.net>", "RCPT TO:<c@example.net>"
	const hangUp = ""
	const listed, plain = "MAIL FROM:<a@listed.example>", "AUTH PLAIN AGEAYg=="
	minute := limit.Limits{MessagesPerMinute: 2, RecipientsPerMinute: 1, ErrorsPerMinute: 1}
	none := smtpfilter.NewAddressSet(func(func(string) bool) {})
	nobody := func() *smtpfilter.AddressSet { return none }
	for name, c := range map[string]struct {
		commands []string
		replies  map[string]string // of the next hop
		policy   smtpfilter.Policy
		limits   limit.Config
		want     string // counts, besides those of the connection and of messages
	}{
		"accepted":             {commands: []string{from, rcpt, again}, want: "recipient accepted 2"},
		"listed":               {commands: []string{listed, rcpt, again}, want: "recipient listed 2"},
		"exempt":               {commands: []string{listed, rcpt}, policy: smtpfilter.Policy{ExemptRecipients: []string{"b@"}}, want: "recipient accepted 1"},
		"discarded":            {commands: []string{"MAIL FROM:<a@dropped.example>", rcpt}, want: "recipient discarded 1"},
		"lists fail":           {commands: []string{"MAIL FROM:<a@damaged.example>", rcpt}, want: "recipient failed 1"},
		"unknown":              {commands: []string{from, rcpt}, policy: smtpfilter.Policy{ValidRecipients: nobody}, want: "recipient unknown 1"},
		"relay denied":         {commands: []string{from, rcpt}, policy: smtpfilter.Policy{RecipientDomains: []string{"example.org"}}, want: "recipient relay_denied 1"},
		"next hop refuses":     {commands: []string{from, rcpt}, replies: map[string]string{rcpt: "550 5.1.1 no"}, want: "recipient refused_by_next_hop 1"},
		"next hop refuses now": {commands: []string{from, rcpt, rcpt}, replies: map[string]string{"MAIL": "451 4.3.0 no"}, want: "recipient refused_by_next_hop 2"},
		"next hop hangs up":    {commands: []string{from, rcpt}, replies: map[string]string{rcpt: smtptest.Close}, want: "recipient failed 1"},
		"not a recipient":      {commands: []string{from, "RCPT TO:<b"}, want: ""},
		"postponed": {commands: []string{from, rcpt, again, "DATA", "Message-ID: <1@example.com>\r\n\r\n.", from, rcpt, again},
			replies: map[string]string{". " + again: "452 4.2.2 full"}, want: "recipient accepted 3, recipient postponed 1"},
		"many":       {commands: []string{from, rcpt, again}, policy: smtpfilter.Policy{MaxRecipients: 1}, want: "recipient accepted 1, recipient limited 1"},
		"rcpt limit": {commands: []string{from, rcpt, again}, limits: limit.Config{Client: minute}, want: "limited client_recipients_per_minute 1, recipient accepted 1, recipient limited 1"},
		"mail limit": {commands: []string{from, "RSET", from, "RSET", from, "RSET", from}, limits: limit.Config{Network: minute}, want: "limited network_messages_per_minute 2"},
		"errors":     {commands: []string{"FOO", "BAR"}, limits: limit.Config{Client: minute}, want: "limited client_errors_per_minute 1"},
		"logged in":  {commands: []string{plain}, want: "auth authenticated 1"},
		"refused":    {commands: []string{plain, plain}, replies: map[string]string{"AUTH": "535 5.7.8 no"}, want: "auth refused 2"},
		"not now":    {commands: []string{plain}, replies: map[string]string{"AUTH": "454 4.7.0 no"}, want: "auth unavailable 1"},
		"not asked":  {commands: []string{plain}, replies: map[string]string{"AUTH": smtptest.Close}, want: "auth unavailable 1"},
		"cancelled":  {commands: []string{"AUTH PLAIN", "*"}, replies: map[string]string{"AUTH": "334 ", "*": "501 5.7.0 no"}, want: "auth abandoned 1"},
		"hangs up":   {commands: []string{"AUTH PLAIN", hangUp}, replies: map[string]string{"AUTH": "334 "}, want: "auth abandoned 1"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Extensions: []string{"AUTH PLAIN"}, Replies: c.replies})
			hop, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", ProbeInterval: -1, LMTP: true})
			if err != nil {
				t.Fatal(err)
			}
			_ = hop.Probe(t.Context()) // learns that AUTH is offered; some of the replies fail it
			store := partial.Open(filepath.Join(t.TempDir(), "lmtp.partial"), partial.Options{})
			t.Cleanup(store.Close)
			meter := &tally{ended: make(chan struct{})}
			g := newGate(t, gateOptions{
				target: hop, meter: meter, memory: store, policy: c.policy, limiter: limit.New(c.limits), auth: true,
				checker: mustJudge(t, "envelope @listed.example reject", "envelope @dropped.example discard", "envelope @damaged.example fail"),
				wire:    smtpfilter.Settings{TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit},
			})
			conn := dialTLS(t, g.addr)
			conn.readReply()
			for _, command := range append(append([]string{"EHLO client.example"}, c.commands...), "QUIT") {
				if command == hangUp {
					break
				}
				conn.send(command + "\r\n")
				if reply, err := conn.readReply(); err != nil || strings.HasPrefix(reply, "421") {
					break
				}
			}
			conn.Close()
			<-meter.ended
			if got := meter.parts(); got != c.want {
				t.Errorf("counted %q, want %q", got, c.want)
			}
		})
	}
}

// parts returns the counts of recipients, limits and logins.
func (m *tally) parts() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(m.counts)) {
		if strings.Contains(what, " ") {
			parts = append(parts, what+" "+string(rune('0'+m.counts[what])))
		}
	}
	return strings.Join(parts, ", ")
}
