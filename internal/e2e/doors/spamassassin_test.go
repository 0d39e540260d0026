package doors

import (
	"net"
	"os/exec"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestSpamAssassin has SpamAssassin's plugin HashBL ask the gate with the rules of
// docs/examples/spamassassin.cf. It looks only for addresses whose last label exists.
func TestSpamAssassin(t *testing.T) {
	t.Parallel()
	harness.Program(t, "spamassassin", "spamassassin")
	g := startDoors(t, harness.Setup{
		Listen: harness.NoListener,
		Tables: "[[dns_server]]\nname = \"dns\"\naddr = \"127.0.0.1:0\"\nzone = \"bl.example.org\"\nhashed_zone = \"hash-bl.example.org\"\n",
		Files: map[string]string{
			"blocked.txt": "spam.example.com\nann@example.net\n!known@spam.example.com\n",
		},
	})
	host, port, _ := net.SplitHostPort(doorAddr(g, "dns"))
	ask := harness.StartLines(t, "SpamAssassin", exec.Command("perl", "testdata/spamassassin.pl", "../../../docs/examples/spamassassin.cf", host, port))
	const clean = "bob@example.org"
	for _, test := range []struct{ envelope, from, want string }{
		{clean, clean, "ham "},
		{"x@spam.example.com", clean, "spam SPAMGATE_DOMAIN"},
		{"x@mail.SPAM.example.com", clean, "spam SPAMGATE_DOMAIN"},
		{clean, "x@spam.example.com", "spam SPAMGATE_DOMAIN"},
		{"ann@example.net", clean, "spam SPAMGATE_ADDRESS"},
		{clean, "Ann+tag@Example.NET", "spam SPAMGATE_ADDRESS"},
		{clean, "bob@example.net", "ham "},
	} {
		if text := ask(test.envelope + " " + test.from); text != test.want {
			t.Errorf("from <%s>, From: %s: %q, want %q", test.envelope, test.from, text, test.want)
		}
	}
	g.Stop()
	if text := ask("x@spam.example.com x@spam.example.com"); text != "ham " {
		t.Errorf("without a gate: %q, want the mail to pass", text)
	}
}
