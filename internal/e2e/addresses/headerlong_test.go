package addresses

import (
	"fmt"
	"net"
	"net/mail"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// longFields are fields with a sender that no list knows, and of which Postfix makes another
// one.
var longFields = []struct{ name, field string }{
	{"cut to another domain", "From: " + strings.Repeat(" ", 102_375) + "spam@listed.example.ok.example"},
	{"cut before the address", "From: spam@listed.example" + strings.Repeat("\r\n"+strings.Repeat(" ", 990), 104) + " <ok@ok.example>"},
	{"folded within a quoted pair", `From: "` + strings.Repeat("x", 990) + `\" <spam@listed.example>, " <ok@ok.example>`},
	{"folded within an address", "From: " + strings.Repeat("x", 991) + "|evil@addr.example"},
}

// TestLongFields sends long From fields to Postfix, which relays them over SMTP. It cuts and folds
// them, so that some arrive with a listed sender. A gate before it refuses them all.
func TestLongFields(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	host, port, _ := net.SplitHostPort(sink.Addr())
	p := harness.StartPostfix(t, harness.Everywhere, "virtual_mailbox_domains =",
		fmt.Sprintf("relayhost = [%s]:%s", host, port), "header_checks =", "smtpd_authorized_xclient_hosts = 127.0.0.1")
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Files: map[string]string{"blocked.txt": "listed.example\nevil@addr.example\n"}})
	for i, f := range longFields {
		message := f.field + "\r\nSubject: x\r\n\r\nx\r\n"
		if reply := harness.MustDial(t, p.Addr).MustSend(t, "a@clean.example", harness.Mailbox, message); !strings.HasPrefix(reply, "250 ") {
			t.Fatalf("%s: Postfix says %q", f.name, reply)
		}
		harness.WaitFor(t, "Postfix to relay the message", func() bool { return len(sink.Messages()) == i+1 })
		from := arrivedSender(t, sink.Messages()[i].Body)
		t.Logf("%s: directly it arrives from %s", f.name, from)
		if from != "spam@listed.example" && from != "evil@addr.example" {
			t.Errorf("%s: it arrives from %q, which is not listed: the test does not test much", f.name, from)
		}
	}
	for _, f := range longFields {
		reply := harness.MustDial(t, g.Addr).MustSend(t, "a@clean.example", harness.Mailbox, f.field+"\r\nSubject: x\r\n\r\nx\r\n")
		if !strings.HasPrefix(reply, "554 5.6.0 Header field From ") {
			t.Errorf("%s: the gate says %q", f.name, reply)
		}
	}
}

// arrivedSender returns the first address in the From field of a message, as most readers see it.
func arrivedSender(t *testing.T, message []byte) string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(string(message)))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(m.Header.Get("From"), ",")
	a, err := mail.ParseAddress(first[strings.LastIndexByte(strings.TrimSpace(first), ' ')+1:])
	if err != nil {
		t.Errorf("%.100q: %v", first, err)
		return ""
	}
	return a.Address
}
