package door

import (
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door/doortest"
	"spamgate/smtpfilter"
)

// TestAmbiguous: a client cannot choose by the form of an address what counts for its recipient.
func TestAmbiguous(t *testing.T) {
	c, err := doortest.New(
		doortest.List{Name: "blocked", Entries: "bad.example\n", List: store.List{Action: verdict.Reject}},
		doortest.List{Name: "own", Entries: "ann@example.net news.example\n\"x%y\"@example.net odd.example\n", List: store.List{Action: verdict.Reject, PerRecipient: true}},
		doortest.List{Name: "wanted", Entries: "bob@example.net bad.example\nann@example.net ok.bad.example\n",
			List: store.List{Type: blocklist.Allow, PerRecipient: true, Override: true}},
	)
	if err != nil {
		t.Fatal(err)
	}
	own := smtpfilter.NewDomainSet([]string{"example.net", ".sales.example.net"})
	policy := smtpfilter.Policy{
		HeaderFields: []string{"From"}, OwnDomains: func() *smtpfilter.DomainSet { return own },
		ExemptRecipients: []string{"abuse@", "@open.example.net", "vip@example.net"},
		Recipients: []smtpfilter.RecipientRule{
			{Name: "sales", Match: func(r verdict.Recipient) bool { return r.Domain == "sales.example.net" }, Exempt: true},
			{Name: "bare", Match: func(r verdict.Recipient) bool { return r.Domain == "" || strings.HasPrefix(r.Domain, "[") }, MaxAction: verdict.Tag},
		},
	}
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	d := New(Config{Protocol: "milter"}, Settings{Checker: c, Policy: policy})
	const accept = "accept"
	for _, tt := range []struct {
		sender, to, rewritten string
		want                  string
	}{
		// As they should be written.
		{"q@bad.example", "x@sales.example.net", "", accept},
		{"q@bad.example", "x@open.example.net", "", accept},
		{"q@bad.example", "bob@example.net", "", accept},
		{"q@news.example", "ann@example.net", "", "own"},
		// The policy or exemption of another domain.
		{"q@bad.example", "joe%example.net@sales.example.net", "", "blocked"},
		{"q@bad.example", "example.net!joe@sales.example.net", "", "blocked"},
		{"q@bad.example", `"joe@example.net"@sales.example.net`, "", "blocked"},
		{"q@bad.example", `"joe%example.net"@open.example.net`, "", "blocked"},
		{"q@bad.example", `"@sales.example.net:joe@example.net"@open.example.net`, "", "blocked"},
		{"q@bad.example", "joe", "", "blocked"},
		{"q@bad.example", "joe@[192.0.2.1]", "", "blocked"},
		{"q@bad.example", "postmaster%example.net@sales.example.net", "", "blocked"},
		{"q@bad.example", "vip", "", "blocked"},
		{"q@bad.example", "abuse", "", accept},
		{"q@bad.example", "abuse@[192.0.2.1]", "", accept},
		{"q@bad.example", "postmaster", "", accept},
		// Lines of the recipient, block and allow.
		{"q@news.example", "ann", "", "own"},
		{"q@news.example", "ANN@[IPv6:2001:db8::1]", "", "own"},
		{"q@news.example", "ann@192.0.2.1", "", "own"},
		{"q@news.example", "ann+tag%example.net@sales.example.net", "", "own"},
		{"q@news.example", "ann%example.net@example.net", "", "own"},
		{"q@news.example", "ann%example.net%sales.example.net%example.net%sales.example.net@example.net", "", "own"},
		{"q@news.example", "sales.example.net!example.net!sales.example.net!example.net!ann@example.net", "", "own"},
		{"q@news.example", "sales.example.net!sales.example.net!ann%example.net%sales.example.net", "", "own"},
		{"q@news.example", `"ann@example.net"@sales.example.net`, "", "own"},
		{"q@news.example", `"@a.example,@b.example:ann@example.net"@sales.example.net`, "", "own"},
		{"q@odd.example", `"x%y"@example.net`, "", "own"},
		{"q@bad.example", "bob%example.net@sales.example.net", "", "blocked"},
		{"q@ok.bad.example", "ann%example.net!bob@example.net", "", "blocked"},
		// What the mail server has made of it.
		{"q@bad.example", "joe", "joe@sales.example.net", accept},
		{"q@news.example", "ann(x)@sales.example.net", "ann@example.net", "own"},
		{"q@bad.example", "x@sales.example.net", "joe@example.net", accept},
		{"q@bad.example", "joe@example.net", "x@sales.example.net", "blocked"},
		{"q@bad.example", "joe%example.net@sales.example.net", "joe", "blocked"},
		{"q@bad.example", "joe", "joe%example.net@sales.example.net", "blocked"},
	} {
		for _, inHeader := range []bool{false, true} {
			envelope, header := tt.sender, "clean@clean.example"
			if inHeader {
				envelope, header = header, envelope
			}
			m := d.Begin(t.Context(), Envelope{From: envelope})
			a := m.RecipientAs(tt.to, tt.rewritten)
			if inHeader && a.Reply.IsZero() {
				m.Header([]byte("From: <"+header+">\r\n"), nil)
				a = m.End()
			}
			got := accept
			if _, list, ok := strings.Cut(a.Reply.String(), "refused: list "); ok {
				got, _, _ = strings.Cut(list, ";")
			}
			if len(a.Tags) > 0 {
				got = a.Tags[0]
			}
			if got != tt.want {
				t.Errorf("%s to %s (rewritten %q), in the header %t: %s, want %s", tt.sender, tt.to, tt.rewritten, inHeader, got, tt.want)
			}
		}
	}
}
