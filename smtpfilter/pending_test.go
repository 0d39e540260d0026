package smtpfilter_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname/dnstest"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
)

// provenLists returns a set-up in which ceo@partner.example passes with a signature only.
func provenLists(t *testing.T) *listScene {
	t.Helper()
	s := &listScene{}
	for _, line := range [][2]string{
		{"list", "blocked reject : partner.example"},
		{"list", "partners allow proven_by=dkim : ceo@partner.example"},
		{"key", "partner.example"},
	} {
		if known, err := s.setUp(&smtpfilter.Policy{}, line[0], line[1]); !known || err != nil {
			t.Fatal(line, err)
		}
	}
	return s
}

// TestPendingMessage sends signed messages, and some that were changed on their way, in each
// way and to each kind of next hop. Only the former have an end there, and only after the name
// server has answered.
func TestPendingMessage(t *testing.T) {
	body := "From: ceo@partner.example\r\nSubject: dots\r\n\r\n.\r\n..two\r\n" + strings.Repeat("a line of the message\r\n", 5000) + ".\r\n"
	for _, hop := range []string{"smtp", "chunks", "lmtp", "maildir"} {
		for _, command := range []string{"DATA", "BDAT"} {
			for _, forged := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %t", hop, command, forged), func(t *testing.T) {
					t.Parallel()
					lists := provenLists(t)
					checker, signatures := lists.start(t)
					released := make(chan struct{})
					lists.dns.Behave(dnstest.Behavior{Hold: released})
					target, delivered := pendingHop(t, hop)
					o := gateOptions{target: target, checker: checker, policy: smtpfilter.Policy{HeaderFields: []string{"From"}}}
					o.wire.Signatures = signatures
					if hop == "lmtp" {
						store := partial.Open(filepath.Join(t.TempDir(), "lmtp"), partial.Options{})
						t.Cleanup(store.Close)
						o.memory = store
					}
					c := dial(t, newGate(t, o).addr)
					c.reply("220")
					c.send("EHLO client.example\r\n")
					c.reply("250")
					message := signMessage(t, body)
					sent := message
					if forged {
						sent = strings.Replace(message, "..two", "..one", 1)
					}
					sendWhole(c, command, sent)
					lists.dns.Wait(t.Context(), t, 1)
					if got := delivered(); got != nil {
						t.Errorf("delivered before it was proven: %.100q", got)
					}
					close(released)
					want, copies := "250", 1
					if forged {
						want, copies = "550 5.7.1 <ceo@partner.example> refused: list blocked", 0
					}
					c.reply(want)
					got := delivered()
					if len(got) != copies || copies == 1 && !strings.HasSuffix(got[0], message) {
						t.Errorf("%d messages delivered, want %d: %.600q", len(got), copies, got)
					}
					c.send("MAIL FROM:<a@example.com>\r\n") // the session goes on
					c.reply("250")
				})
			}
		}
	}
}

// TestSignedDotLine: a line of the header that begins with a dot is verified without its
// dot-stuffing, as the first line and as another one.
func TestSignedDotLine(t *testing.T) {
	for _, message := range []string{
		".mark: one\r\nFrom: ceo@partner.example\r\n\r\nhello\r\n",
		"From: ceo@partner.example\r\n.mark: two\r\n\r\nhello\r\n.\r\n",
	} {
		checker, signatures := provenLists(t).start(t)
		target, delivered := pendingHop(t, "smtp")
		o := gateOptions{target: target, checker: checker, policy: smtpfilter.Policy{HeaderFields: []string{"From"}}}
		o.wire.Signatures = signatures
		c := dial(t, newGate(t, o).addr)
		c.reply("220")
		c.send("EHLO client.example\r\n")
		c.reply("250")
		// The signature comes last, so that the field stays where it is.
		signed := signMessage(t, message)
		signature := strings.TrimSuffix(signed, message)
		head, body, _ := strings.Cut(message, "\r\n\r\n")
		signed = head + "\r\n" + strings.TrimSuffix(signature, "\r\n") + "\r\n\r\n" + body
		c.send("MAIL FROM:<ceo@partner.example>\r\n")
		c.reply("250")
		c.send("RCPT TO:<b@example.net>\r\n")
		c.reply("250")
		c.send("DATA\r\n")
		c.reply("354")
		stuffed := strings.ReplaceAll("\n"+signed, "\n.", "\n..")[1:]
		c.send(stuffed + ".\r\n")
		c.reply("250")
		if got := delivered(); len(got) != 1 || !strings.HasSuffix(got[0], signed) {
			t.Errorf("delivered %q, want %q", got, signed)
		}
	}
}

// sendWhole sends a message with DATA, or in three chunks.
func sendWhole(c *client, command, message string) {
	c.send("MAIL FROM:<ceo@partner.example>\r\n")
	c.reply("250")
	c.send("RCPT TO:<b@example.net>\r\n")
	c.reply("250")
	if command == "DATA" {
		c.send("DATA\r\n")
		c.reply("354")
		c.send(strings.ReplaceAll(message, "\n.", "\n..") + ".\r\n")
		return
	}
	middle := strings.Index(message, "\r\n\r\n.") + 9 // between two dots
	for _, chunk := range []string{message[:50], message[50:middle]} {
		c.send(fmt.Sprintf("BDAT %d\r\n%s", len(chunk), chunk))
		c.reply("250")
	}
	c.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(message)-middle, message[middle:]))
}

// signMessage returns a message with a signature of its sender's domain.
func signMessage(t *testing.T, message string) string {
	t.Helper()
	signed, err := signed("partner.example", message)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// pendingHop returns a next hop, and a function that returns the messages that it has whole.
func pendingHop(t *testing.T, kind string) (nexthop.Target, func() []string) {
	if kind == "maildir" {
		dir := filepath.Join(t.TempDir(), "mail")
		target, err := nexthop.NewMaildir(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return target, func() (all []string) {
			files, err := filepath.Glob(filepath.Join(dir, "new", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(text))
			}
			return all
		}
	}
	config := smtptest.Config{LMTP: kind == "lmtp"}
	if kind == "chunks" {
		config.Extensions = append([]string{"CHUNKING"}, smtptest.DefaultExtensions...)
	}
	sink := smtptest.NewSink(t, config)
	target, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", ProbeInterval: -1, LMTP: kind == "lmtp"})
	if err != nil {
		t.Fatal(err)
	}
	return target, func() (all []string) {
		for _, m := range sink.Messages() {
			all = append(all, string(m.Body))
		}
		return all
	}
}

// countVerifier counts the Verifications that began and that were ended.
type countVerifier struct {
	signatureVerifier smtpfilter.SignatureVerifier
	began, ended      atomic.Int32
}

func (v *countVerifier) Verify(ctx context.Context, domains []string) smtpfilter.Verification {
	v.began.Add(1)
	return &countVerification{Verification: v.signatureVerifier.Verify(ctx, domains), counts: v}
}

type countVerification struct {
	smtpfilter.Verification
	counts *countVerifier
	once   bool
}

func (v *countVerification) end() {
	if !v.once {
		v.once = true
		v.counts.ended.Add(1)
	}
}

func (v *countVerification) Finish() []verdict.Signature {
	v.end()
	return v.Verification.Finish()
}

func (v *countVerification) Abort() {
	v.end()
	v.Verification.Abort()
}

// TestPendingEnds has messages that do not come to their end: every Verification is ended, and
// nothing is delivered.
func TestPendingEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		hop   smtptest.Config
		after string // of the message, in place of its end
		want  string // the reply; "" if the client disconnects
	}{
		"the client disconnects":     {after: ""},
		"a bare LF":                  {after: strings.Repeat("more\r\n", 1<<17) + "bare\nLF\r\n.\r\n", want: "550 5.5.2"},
		"the next hop disconnects":   {hop: smtptest.Config{Body: &smtptest.BodyFault{After: 500, Reply: smtptest.Close}}, after: strings.Repeat("more\r\n", 1<<17) + ".\r\n", want: "451 4.4."},
		"the next hop refuses early": {hop: smtptest.Config{Replies: map[string]string{"DATA": "552 5.2.2 full"}}, after: ".\r\n", want: "552 5.2.2 full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker, signatures := provenLists(t).start(t)
			counting := &countVerifier{signatureVerifier: signatures}
			sink := smtptest.NewSink(t, tt.hop)
			var log lockedBuffer
			o := gateOptions{nextHop: sink.Addr(), checker: checker, log: slog.New(slog.NewTextHandler(&log, nil))}
			o.wire.Signatures = counting
			g := newGate(t, o)
			c := dial(t, g.addr)
			c.toData("ceo@partner.example")
			body, end := strings.CutSuffix(tt.after, ".\r\n")
			c.send(signMessage(t, "From: x@partner.example\r\n\r\nhello\r\n"+body))
			if end {
				c.send(".\r\n")
			}
			if tt.want != "" {
				c.reply(tt.want)
			}
			c.Close()
			sink.WaitConns(0)
			g.stop(t)
			if began, ended := counting.began.Load(), counting.ended.Load(); began != ended || began > 1 || began == 0 && tt.hop.Replies == nil {
				t.Errorf("%d verifications began, %d ended", began, ended)
			}
			for _, m := range sink.Messages() {
				t.Errorf("delivered: %.100q", m.Body)
			}
		})
	}
}
