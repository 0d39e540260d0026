package alike

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/miekg/dns"
)

// key signs for every domain of zone.
var key = ed25519.NewKeyFromSeed([]byte("the seed of the key of all tests"))

// sign returns a header with a signature of a domain before it. Simple canonicalization takes
// every space of the header and the body as it is.
func sign(t testing.TB, domain, header, body string) string {
	t.Helper()
	if body == "" {
		body = plainBody
	}
	var signed bytes.Buffer
	err := dkim.Sign(&signed, strings.NewReader(header+"\r\n"+body), &dkim.SignOptions{
		Domain: domain, Selector: "ed", Signer: key,
		HeaderCanonicalization: dkim.CanonicalizationSimple, BodyCanonicalization: dkim.CanonicalizationSimple,
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(signed.String(), "\r\n"+body)
}

// startZone starts a name server, and returns its address. The domains that the tests name have
// a key and permit the client good. The records of temp.example cannot be had, nor the key of
// late.example.
func startZone(t testing.TB) string {
	t.Helper()
	public := "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	records := map[string]string{}
	for _, domain := range []string{"partner.example", "mail.partner.example", "spf.example", "mail.spf.example",
		"dkim.example", "mail.dkim.example", "attacker.example"} {
		records["ed._domainkey."+domain+"."] = public
		records[domain+"."] = "v=spf1 ip4:" + good + " -all"
	}
	records["late.example."] = "v=spf1 -all"
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		name := strings.ToLower(q.Question[0].Name)
		text, known := records[name]
		switch {
		case strings.HasSuffix(name, "temp.example.") || name == "ed._domainkey.late.example.":
			r.Rcode = dns.RcodeServerFailure
		case !known:
			r.Rcode = dns.RcodeNameError
		case q.Question[0].Qtype == dns.TypeTXT:
			r.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}, Txt: []string{text}}}
		}
		_ = w.WriteMsg(r) // who asks has gone, or asks again
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	return conn.LocalAddr().String()
}
