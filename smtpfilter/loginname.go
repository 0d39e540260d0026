package smtpfilter

import (
	"encoding/base64"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"spamgate/smtpfilter/limit"
)

// saslExchange remembers what a client sends with AUTH, until the next hop has decided, to
// find the name in it. Nothing of it is logged.
type saslExchange struct {
	mechanism             string
	first, previous, last string // answers in base64, of those that are not empty
}

// newSASLExchange returns the exchange of an AUTH command with these arguments.
func newSASLExchange(args string) *saslExchange {
	mechanism, initial, _ := strings.Cut(args, " ")
	x := &saslExchange{mechanism: mechanism}
	if initial != "=" {
		x.add(initial)
	}
	return x
}

// add adds an answer of the client.
func (x *saslExchange) add(answer string) {
	if answer == "" {
		return
	}
	if x.first == "" {
		x.first = answer
	}
	x.previous, x.last = x.last, answer
}

// login returns the login that has succeeded, and forgets the exchange. A mechanism that does
// not show the name counts by the client's address.
func (x *saslExchange) login(client netip.Addr) limit.LoginID {
	name := x.name()
	*x = saslExchange{}
	if name == "" {
		name = "\x00" + client.Unmap().WithZone("").String() // not a name
	}
	return limit.LoginOf(name)
}

var (
	scramName  = regexp.MustCompile(`^[^,]*,[^,]*,n=([^,]*),`)                // RFC 5802, section 7
	digestName = regexp.MustCompile(`(?:^|,)\s*username="((?:[^"\\]|\\.)*)"`) // RFC 2831, section 2.1.2
	oauthName  = regexp.MustCompile(`^n,a=([^,]*),\x01`)                      // RFC 7628, section 3.1
)

// name returns the name of the account whose secret the client has shown, or "" if the
// mechanism does not tell.
func (x *saslExchange) name() string {
	name := ""
	switch {
	case x.mechanism == "PLAIN": // RFC 4616: authzid NUL authcid NUL passwd
		if parts := strings.Split(decoded(x.last), "\x00"); len(parts) == 3 {
			name = parts[1]
		}
	case x.mechanism == "LOGIN": // the name, then the password
		name = decoded(x.previous)
	case x.mechanism == "CRAM-MD5": // RFC 2195: name SP digest
		if answer := decoded(x.last); strings.Contains(answer, " ") {
			name = answer[:strings.LastIndexByte(answer, ' ')]
		}
	case strings.HasPrefix(x.mechanism, "SCRAM-"):
		name = strings.NewReplacer("=2C", ",", "=3D", "=").Replace(submatch(scramName, x.first))
	case x.mechanism == "DIGEST-MD5":
		name = submatch(digestName, x.first)
	case x.mechanism == "XOAUTH2": // "user=" name ^A "auth=Bearer " token ^A ^A
		user, _, _ := strings.Cut(decoded(x.first), "\x01")
		name, _ = strings.CutPrefix(user, "user=")
	case x.mechanism == "OAUTHBEARER":
		name = submatch(oauthName, x.first)
	}
	return foldLogin(name)
}

func decoded(answer string) string {
	text, err := base64.StdEncoding.DecodeString(answer)
	if err != nil {
		return ""
	}
	return string(text)
}

func submatch(re *regexp.Regexp, answer string) string {
	if m := re.FindStringSubmatch(decoded(answer)); m != nil {
		return m[1]
	}
	return ""
}

// foldLogin returns a name as servers may compare it: they ignore case, space around it and
// forms of characters (RFC 8265) in different ways. Were such names counted apart, each
// spelling would have the whole allowance.
func foldLogin(name string) string {
	return strings.ToLower(norm.NFKC.String(strings.TrimSpace(name)))
}
