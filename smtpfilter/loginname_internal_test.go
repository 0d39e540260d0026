package smtpfilter

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
)

func TestLoginName(t *testing.T) {
	for _, c := range []struct {
		what    string
		args    string   // of AUTH; the part after the mechanism is not in base64 yet
		answers []string // neither are these
		want    string
	}{
		{"PLAIN", "PLAIN \x00ann\x00secret", nil, "ann"},
		{"PLAIN, later", "PLAIN", []string{"\x00ann\x00secret"}, "ann"},
		{"PLAIN, empty and later", "PLAIN =", []string{"\x00ann\x00secret"}, "ann"},
		{"PLAIN: the account is that of the password", "PLAIN boss\x00Ann@Example.com\x00secret", nil, "ann@example.com"},
		{"PLAIN, broken", "PLAIN ann\x00secret", nil, ""},
		{"LOGIN", "LOGIN", []string{"ann", "secret"}, "ann"},
		{"LOGIN, at once", "LOGIN ann", []string{"secret"}, "ann"},
		{"LOGIN: a server that asks again", "LOGIN decoy", []string{"ann", "secret"}, "ann"},
		{"LOGIN, spelled in another way", "LOGIN", []string{" \uff21NN ", "secret"}, "ann"},
		{"CRAM-MD5", "CRAM-MD5", []string{"ann of example b913a602c7eda7a495b4e6e7334d3890"}, "ann of example"},
		{"SCRAM", "SCRAM-SHA-256 n,,n=ann=2Cthe=3Done,r=fyko+d2lbbFgONRv9qkxdawL", []string{"c=biws,r=…,p=…"}, "ann,the=one"},
		{"SCRAM-PLUS", "SCRAM-SHA-1-PLUS p=tls-unique,a=boss,n=ann,r=fyko", []string{"c=…"}, "ann"},
		{"DIGEST-MD5", "DIGEST-MD5", []string{`charset=utf-8,username="ann",realm="example.com",nonce="x"`, ""}, "ann"},
		{"XOAUTH2", "XOAUTH2 user=ann@example.com\x01auth=Bearer abc\x01\x01", nil, "ann@example.com"},
		{"OAUTHBEARER", "OAUTHBEARER n,a=ann@example.com,\x01host=x\x01auth=Bearer abc\x01\x01", nil, "ann@example.com"},
		{"OAUTHBEARER without a name", "OAUTHBEARER n,,\x01auth=Bearer abc\x01\x01", nil, ""},
		{"a mechanism without a name", "GSSAPI YIIB", []string{"x"}, ""},
		{"nothing", "PLAIN", nil, ""},
	} {
		mechanism, initial, has := strings.Cut(c.args, " ")
		if has && initial != "=" {
			initial = base64.StdEncoding.EncodeToString([]byte(initial))
		}
		x := newSASLExchange(strings.TrimSpace(mechanism + " " + initial))
		for _, a := range c.answers {
			x.add(base64.StdEncoding.EncodeToString([]byte(a)))
		}
		if got := x.name(); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// FuzzLoginName: whatever a client sends, the name is folded, and the exchange is forgotten
// with the result. Spellings that are folded alike are one login.
func FuzzLoginName(f *testing.F) {
	f.Add("PLAIN", "\x00ann\x00secret", "")
	f.Add("LOGIN", "ann", "secret")
	f.Add("SCRAM-SHA-256", "n,,n==,r=", "")
	f.Add("DIGEST-MD5", `username="\"`, "")
	f.Fuzz(func(t *testing.T, mechanism, first, second string) {
		encode := base64.StdEncoding.EncodeToString
		x := newSASLExchange(mechanism + " " + encode([]byte(first)))
		x.add(encode([]byte(second)))
		name := x.name()
		if again := foldLogin(name); again != name && foldLogin(again) != again {
			t.Errorf("%q folds to %q and on", name, again)
		}
		if x.login(netip.MustParseAddr("192.0.2.1")); *x != (saslExchange{}) {
			t.Errorf("it still holds %+v", *x)
		}
	})
}
