package milter

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter/clientname/dnstest"
)

// provingTables are those of a gate with an allow list that wants proofs, and a list by recipient.
const provingTables = `
[resolver]
addr = [%q]
[[milter]]
name = "beside"
addr = %q
`

const provingLists = `
[[list]]
name = "partners"
path = "partners.txt"
type = "allow"
proven_by = ["spf", "dkim"]
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "own"
path = "own.txt"
per_recipient = true
`

var key = ed25519.NewKeyFromSeed([]byte("the seed of the key of all tests"))

// startProvingGate starts a gate with a milter, whose address it returns, and a name server with
// the key of partner.example and of attacker.example.
func startProvingGate(t testing.TB) (*harness.Gate, string) {
	t.Helper()
	zone := dnstest.New(t, "127.0.0.1:0")
	for _, domain := range []string{"partner.example", "attacker.example"} {
		zone.AddText("ed._domainkey."+domain, "v=DKIM1; k=ed25519; p="+base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), 60)
		zone.AddText(domain, "v=spf1 ip4:192.0.2.1 -all", 60)
	}
	addr := harness.FreeAddr(t)
	g := harness.LaunchGate(t, harness.Setup{
		Listen: harness.NoListener,
		Tables: fmt.Sprintf(provingTables, zone.Addr(), addr),
		Lists:  provingLists,
		Files: map[string]string{"partners.txt": "partner.example\n", "blocked.txt": "partner.example\n",
			"own.txt": "me@example.net news.example  # me asked\n"},
	})
	g.WaitRecord("door open", "listener", "beside")
	return g, addr
}

// sign returns a message with a signature of a domain before it, in which every space counts.
func sign(t testing.TB, domain, message string) string {
	t.Helper()
	var signed bytes.Buffer
	if err := dkim.Sign(&signed, strings.NewReader(message), &dkim.SignOptions{Domain: domain, Selector: "ed", Signer: key}); err != nil {
		t.Fatal(err)
	}
	return signed.String()
}

const from = "From: a@partner.example\r\n"

// exact are messages of which mail servers tell a milter every byte, and so a signature of each
// is valid. In version 2 of the protocol a field has always one space after the colon.
var exact = map[string]string{
	"plain":              from + "Subject: x\r\n\r\nhello\r\n",
	"case":               "FROM: a@partner.example\r\nsubJECT: x\r\n\r\nhello\r\n",
	"folded":             from + "Subject: a\r\n\tb\r\n  c\r\n\r\nhello\r\n",
	"folded blank":       from + "Subject: a\r\n \r\n b\r\n\r\nhello\r\n",
	"trailing space":     from + "Subject: a  \r\nX-B: b\t\r\n\r\nhello \r\n",
	"two spaces":         from + "Subject:  x\r\n\r\nhello\r\n",
	"8 bit":              from + "Subject: \xe4\xc3\xa4\r\n\r\nh\xe4llo\r\n",
	"long field":         from + "Subject: " + strings.Repeat("x", 3000) + "\r\n\r\nhello\r\n",
	"long line":          from + "Subject: x\r\n\r\n" + strings.Repeat("y", 5000) + "\r\n",
	"blank lines":        from + "Subject: x\r\n\r\nhello\r\n\r\n\r\n",
	"empty body":         from + "Subject: x\r\n\r\n",
	"dots":               from + "Subject: x\r\n\r\n.\r\n..\r\n.a\r\n",
	"Received":           "Received: from c\r\n\tby d; Mon, 1 Jan 2024 00:00:00 +0000\r\n" + from + "\r\nhello\r\n",
	"fields twice":       from + "X-U: 1\r\nX-U: 1\r\nX-V: 2\r\n\r\nhello\r\n",
	"several packets":    from + "Subject: x\r\n\r\n" + strings.Repeat("some line \r\n", 20000),
	"cut within a CRLF":  from + "Subject: x\r\n\r\n" + strings.Repeat(strings.Repeat("y", 98)+"\r\n", 655) + strings.Repeat("y", 34) + "\r\nz\r\n",
	"6: no space":        "From:a@partner.example\r\nSubject:x\r\n\r\nhello\r\n",
	"6: tab":             from + "Subject:\tx\r\n\r\nhello\r\n",
	"6: empty value":     from + "X-A:\r\nX-B: \r\n\r\nhello\r\n",
	"6: folded at first": from + "Message-ID:\r\n <x@y>\r\n\r\nhello\r\n",
	"sendmail: Bcc":      from + "Bcc: c@d.example\r\n\r\nhello\r\n",
}

// TestSignatures: a signature is verified over what the mail server has received, with spaces,
// folds and all, and decides about the message.
func TestSignatures(t *testing.T) {
	remote := []string{"mynetworks = 10.255.255.255/32", "local_header_rewrite_clients =", "relay_domains = example.net"}
	for _, c := range []struct {
		name, kinds string // of messages whose signature is valid
		start       func(t testing.TB, milter string) mailServer
	}{
		{"postfix-6", "6", func(t testing.TB, milter string) mailServer { return startPostfix(t, milter, remote...) }},
		{"postfix-2", "", func(t testing.TB, milter string) mailServer {
			return startPostfix(t, milter, append(remote, "milter_protocol = 2")...)
		}},
		{"sendmail", "6 sendmail", func(t testing.TB, milter string) mailServer { return startSendmail(t, milter, "T") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, milter := startProvingGate(t)
			client := harness.MustDial(t, c.start(t, milter).addr)
			send := func(name, message, to, want string) {
				t.Helper()
				client.Want(t, "MAIL FROM:<a@clean.example>", "250")
				for rcpt := range strings.FieldsSeq(to) {
					client.Want(t, "RCPT TO:<"+rcpt+">", "250")
				}
				client.Want(t, "DATA", "354")
				if _, err := client.Write(harness.DotStuff([]byte(message))); err != nil {
					t.Fatal(err)
				}
				reply, err := client.Reply()
				if reply = someID.ReplaceAllString(strings.TrimSpace(reply), "id ID"); err != nil || reply != want && (want != "250" || !strings.HasPrefix(reply, want)) {
					t.Errorf("%s: %q, %v; want %q", name, reply, err, want)
				}
			}
			const refused = "550 5.7.1 <a@partner.example> refused: list blocked; id ID"
			for name, message := range exact {
				kind, _, special := strings.Cut(name, ": ")
				want := "250"
				if special && !strings.Contains(c.kinds, kind) {
					want = refused
				}
				send(name, sign(t, "partner.example", message), you, want)
			}
			plain := sign(t, "partner.example", exact["plain"])
			send("no signature", exact["plain"], you, refused)
			send("another's signature", sign(t, "attacker.example", exact["plain"]), you, refused)
			send("a changed body", plain+"Buy now.\r\n", you, refused)
			send("a changed header", strings.Replace(plain, "Subject: x", "Subject: [list] x", 1), you, refused)
			send("two From fields", from+plain, you, refused)
			news := "From: a@news.example\r\n\r\nnews\r\n"
			send("a recipient's own list", news, me, "550 5.7.1 <a@news.example> refused: list own (me asked); id ID")
			send("for another", news, you, "250")
			send("for both", news, you+" "+me, "550 5.7.1 <a@news.example> refused: list own (me asked); id ID; not for <me@example.net>, send it to the others alone")
		})
	}
}

// TestSPF: SPF is asked for the client of Postfix, which XCLIENT names here. The client of this
// machine proves nothing.
func TestSPF(t *testing.T) {
	g, milter := startProvingGate(t)
	c := harness.MustDial(t, startPostfix(t, milter, "relay_domains = example.net",
		"smtpd_authorized_xclient_hosts = 127.0.0.0/8, 192.0.2.0/24, 10.0.0.0/8").addr)
	for _, step := range []struct{ xclient, want, why string }{
		{"", "550 5.7.1", "the client has the private address 127.0.0.1"},
		{"ADDR=192.0.2.1", "250", "spf: pass for 192.0.2.1"},
		{"ADDR=192.0.2.2", "550 5.7.1", "spf: fail for 192.0.2.2"},
		{"ADDR=10.1.2.3", "550 5.7.1", "the client has the private address 10.1.2.3"},
		{"ADDR=[UNAVAILABLE]", "550 5.7.1", "the client's address is not known"},
	} {
		if step.xclient != "" {
			c.Want(t, "XCLIENT "+step.xclient, "220")
		}
		c.Want(t, "EHLO client.example", "250")
		c.Want(t, "MAIL FROM:<a@partner.example>", "250")
		c.Want(t, "RCPT TO:<"+you+">", "250")
		c.Want(t, "DATA", "354")
		c.Want(t, "From: a@clean.example\r\n\r\nhello\r\n.", step.want)
		found := false
		harness.WaitFor(t, "the line with "+step.why, func() bool {
			for _, text := range []string{"accepted", "refused"} {
				for _, r := range g.Records(text) {
					found = found || strings.Contains(r.Text("proof"), step.why)
				}
			}
			return found
		})
	}
}
