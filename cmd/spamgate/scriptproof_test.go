package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/rogpeppe/go-internal/testscript"

	"spamgate/smtpfilter/clientname/dnstest"
)

// signingKey signs the messages of scripts.
var signingKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// scriptDNS returns the command "dns FILE", which starts a name server and sets $DNS to its
// address. A line of the file has a name and a TXT record. The key of signingKey has the
// record "KEY".
func scriptDNS(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: dns FILE")
		}
		server := dnstest.New(t, "127.0.0.1:0")
		for line := range strings.Lines(ts.ReadFile(args[0])) {
			name, record, _ := strings.Cut(strings.TrimSpace(line), " ")
			if record == "KEY" {
				record = "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(signingKey.Public().(ed25519.PublicKey))
			}
			server.AddText(name, record, 60)
		}
		ts.Setenv("DNS", server.Addr())
	}
}

// scriptSign is the command "sign DOMAIN FROM TO": it signs a message file by a domain, with
// the selector s.
func scriptSign(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sign DOMAIN FROM TO")
	}
	message := strings.NewReader(strings.ReplaceAll(ts.ReadFile(args[1]), "\n", "\r\n"))
	var signed strings.Builder
	ts.Check(dkim.Sign(&signed, message, &dkim.SignOptions{Domain: args[0], Selector: "s", Signer: signingKey}))
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(signed.String()), 0o644))
}
