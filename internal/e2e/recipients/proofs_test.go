package recipients

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter/clientname/dnstest"
)

// provenLists has a domain that is blocked because anybody forges it, and an address there that
// passes if it is proven.
const provenLists = `
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "partners"
path = "partners.txt"
type = "allow"
proven_by = ["dkim", "spf"]
`

// site is a gate with a Postfix and a name server of the test's own.
type site struct {
	*harness.Gate
	dns     *dnstest.Server
	postfix *harness.Postfix
	key     ed25519.PrivateKey
}

func newSite(t *testing.T) *site {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{dns: dnstest.New(t, "127.0.0.1:0"), key: key}
	s.dns.AddText("s._domainkey.partner.example", "v=DKIM1; k=ed25519; p="+base64.StdEncoding.EncodeToString(public), 60)
	s.dns.AddText("partner.example", "v=spf1 ip4:198.51.100.7 -all", 60)
	s.postfix = harness.StartPostfix(t, harness.Nowhere)
	s.Gate = harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + s.postfix.Addr,
		Keys:    map[string]string{"listen": "trusted_proxies = [\"127.0.0.1\"]"},
		Tables:  fmt.Sprintf("[resolver]\naddr = [%q]\n[headers]\ncheck = [\"From\"]\n", s.dns.Addr()),
		Lists:   provenLists,
		Files:   map[string]string{"blocked.txt": "partner.example  # often forged\n", "partners.txt": "ceo@partner.example\n"},
	})
	return s
}

// sign returns a message with a signature of partner.example.
func (s *site) sign(t *testing.T, message string) string {
	var b strings.Builder
	err := dkim.Sign(&b, strings.NewReader(message), &dkim.SignOptions{
		Domain: "partner.example", Selector: "s", Signer: s.key,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestProofs sends messages that are signed, forged, and changed on their way, through the whole
// program. What the client got 250 for is in the mailbox, once and unchanged, and nothing else.
func TestProofs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const text = "From: ceo@partner.example\r\nSubject: %s\r\n\r\nHello,\r\n.dots\r\n..\r\nbye\r\n"
	plain := func(name string) string { return fmt.Sprintf(text, name) }
	signed := func(name string) string { return s.sign(t, plain(name)) }
	const blocked = "550 5.7.1 <ceo@partner.example> refused: list blocked (often forged); id "
	sent := []struct{ name, from, message, want string }{
		{"signed", "a@example.com", signed("signed"), "250"},
		{"long", "a@example.com", s.sign(t, plain("long")+strings.Repeat("a line of a long message\r\n", 40_000)), "250"},
		{"both-senders", "ceo@partner.example", signed("both-senders"), "250"},
		{"bounce-address", "news-1@partner.example", signed("bounce-address"), "550 5.7.1 <news-1@partner.example> refused"},
		{"unsigned", "a@example.com", plain("unsigned"), blocked},
		{"list-footer", "a@example.com", signed("list-footer") + "-- \r\nthe list\r\n", blocked},
		{"list-subject", "a@example.com", strings.Replace(signed("list-subject"), "Subject: ", "Subject: [list] ", 1), blocked},
		{"truncated", "a@example.com", strings.TrimSuffix(signed("truncated"), "bye\r\n"), blocked},
		{"two-from", "a@example.com", "From: boss@example.com\r\n" + signed("two-from"), blocked},
		{"doubled", "a@example.com", s.sign(t, signed("doubled")), "250"},
		{"received", "a@example.com", "Received: from x by y; Mon, 23 Nov 2026 06:00:00 +0000\r\n" + signed("received"), "250"},
	}
	for _, tt := range sent {
		c := harness.MustDial(t, s.Addr)
		reply, err := c.Send(tt.from, harness.Mailbox, []byte(tt.message))
		if err != nil || !strings.HasPrefix(reply, tt.want) {
			t.Errorf("%s: %q, %v; want %s", tt.name, reply, err, tt.want)
		}
		c.Close()
	}
	s.Stop()
	mailbox := harness.SettledPostfix(t, s.postfix)
	passed := 0
	for _, tt := range sent {
		copies := 0
		for _, m := range mailbox {
			if strings.HasSuffix(m, "\n"+strings.ReplaceAll(tt.message, "\r\n", "\n")) {
				copies++
			}
		}
		want := 0
		if tt.want == "250" {
			want = 1
		}
		if copies != want {
			t.Errorf("%s: %d copies, want %d", tt.name, copies, want)
		}
		passed += want
	}
	if len(mailbox) != passed {
		t.Errorf("%d messages are in the mailbox, want %d", len(mailbox), passed)
	}
}

// TestProofBySPF has a trusted proxy name the client. The true server of the domain passes,
// another one does not, and the header is not proven by it.
func TestProofBySPF(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, tt := range []struct{ client, from, header, want string }{
		{"198.51.100.7", "ceo@partner.example", "x@example.com", "250"},
		{"198.51.100.8", "ceo@partner.example", "x@example.com", "550 5.7.1 <ceo@partner.example> refused"},
		{"198.51.100.7", "other@partner.example", "x@example.com", "550 5.7.1 <other@partner.example> refused"},
		{"198.51.100.7", "a@example.com", "ceo@partner.example", "550 5.7.1 <ceo@partner.example> refused"},
		{"", "ceo@partner.example", "x@example.com", "550 5.7.1 <ceo@partner.example> refused"}, // loopback
	} {
		c := harness.MustDial(t, s.Addr)
		if tt.client != "" {
			c.Want(t, "XCLIENT ADDR="+tt.client, "220")
			c.Want(t, "EHLO client.example", "250")
		}
		if reply := c.MustSend(t, tt.from, harness.Mailbox, "From: "+tt.header+"\r\n\r\nhello\r\n"); !strings.HasPrefix(reply, tt.want) {
			t.Errorf("%s from %s, %s: %s, want %s", tt.client, tt.from, tt.header, reply, tt.want)
		}
	}
	s.WaitRecord("accepted", "list", "partners")
	s.WaitRecord("refused", "unproven", "partners")
}

// TestProofWithoutDNS has a name server that does not answer: the client receives its reply
// before a next hop loses patience, and may try again.
func TestProofWithoutDNS(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	s.dns.Behave(dnstest.Behavior{Hold: held})
	c := harness.MustDial(t, s.Addr)
	began := time.Now()
	reply := c.MustSend(t, "a@example.com", harness.Mailbox, s.sign(t, "From: ceo@partner.example\r\n\r\nhello\r\n"))
	if !strings.HasPrefix(reply, "451 4.7.1 <ceo@partner.example> refused: list blocked") {
		t.Errorf("after %v: %s", time.Since(began), reply)
	}
	if took := time.Since(began); took > harness.ReplyTimeout/2 {
		t.Errorf("the reply took %v", took)
	}
	s.Stop()
	if got := harness.SettledPostfix(t, s.postfix); len(got) != 0 {
		t.Errorf("%d messages are in the mailbox", len(got))
	}
}
