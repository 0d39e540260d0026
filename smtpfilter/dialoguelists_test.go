package smtpfilter_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist"
	listjudge "spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door/doortest"
	"spamgate/internal/proof"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname/dnstest"
)

// listScene is the part of a dialogue's set-up that needs real lists: recipients with a say,
// wrapped senders, and senders that must be proven.
type listScene struct {
	lists []doortest.List
	texts [][2]string // TXT records: name, text
	dns   *dnstest.Server
}

// listKey signs messages.
var listKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// setUp carries out a line of the set-up, and reports whether it is one of these:
//
//	list NAME WORD… : ENTRY; …        WORD is allow, an action, stage=, proven_by=, header_action=, override or per_recipient
//	recipients NAME WORD… : ENTRY; …  WORD is exempt, lists=A,B, max_action= or monitor
//	mixed tag
//	key DOMAIN, spf DOMAIN TEXT       what DNS says; without a line DNS is not asked at all
func (s *listScene) setUp(p *smtpfilter.Policy, verb, arg string) (known bool, err error) {
	switch verb {
	case "list":
		l, err := parseList(arg)
		s.lists = append(s.lists, l)
		return true, err
	case "recipients":
		r, err := parseRule(arg)
		p.Recipients = append(p.Recipients, r)
		return true, err
	case "mixed":
		p.MixedHeaders = smtpfilter.MixedTag
		return true, nil
	case "key":
		public := base64.StdEncoding.EncodeToString(listKey.Public().(ed25519.PublicKey))
		s.texts = append(s.texts, [2]string{"s._domainkey." + arg, "v=DKIM1; k=ed25519; p=" + public})
		return true, nil
	case "spf":
		domain, text, _ := strings.Cut(arg, " ")
		s.texts = append(s.texts, [2]string{domain, "v=spf1 " + text})
		return true, nil
	}
	return false, nil
}

func parseList(arg string) (l doortest.List, err error) {
	head, entries, ok := strings.Cut(arg, " : ")
	words := strings.Fields(head)
	if !ok || len(words) < 2 {
		return l, errors.New("want NAME WORD… : ENTRY; …")
	}
	l = doortest.List{Name: words[0], Entries: strings.ReplaceAll(entries, "; ", "\n") + "\n", List: store.List{PublicReason: true}}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "allow":
			l.Type = blocklist.Allow
		case "override":
			l.Override = true
		case "per_recipient":
			l.PerRecipient = true
		case "stage":
			err = errors.Join(err, l.Stages.UnmarshalText([]byte(value)))
		case "proven_by":
			err = errors.Join(err, l.ProvenBy.UnmarshalText([]byte(value)))
		case "header_action":
			err = errors.Join(err, l.HeaderAction.UnmarshalText([]byte(value)))
		default:
			err = errors.Join(err, l.Action.UnmarshalText([]byte(word)))
		}
	}
	return l, err
}

func parseRule(arg string) (r smtpfilter.RecipientRule, err error) {
	head, entries, ok := strings.Cut(arg, " : ")
	words := strings.Fields(head)
	if !ok || len(words) == 0 {
		return r, errors.New("want NAME WORD… : ENTRY; …")
	}
	r = smtpfilter.RecipientRule{Name: words[0], Match: smtpfilter.NewRecipientSet(slices.Values(strings.Split(entries, "; "))).Has}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "exempt":
			r.Exempt = true
		case "lists":
			r.Lists = strings.Split(value, ",")
		case "max_action":
			err = r.MaxAction.UnmarshalText([]byte(value))
		case "monitor":
			r.Monitor = true
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
	}
	return r, err
}

// start returns the Checker of the lists, and what verifies signatures; nil if there is no list.
func (s *listScene) start(t *testing.T) (verdict.Checker, smtpfilter.SignatureVerifier) {
	if s.lists == nil {
		return nil, nil
	}
	set, err := doortest.New(s.lists...)
	if err != nil {
		t.Fatal(err)
	}
	s.dns = dnstest.NewMemory(t)
	for _, text := range s.texts {
		s.dns.AddText(text[0], text[1], 60)
	}
	proofs := proof.New(proof.Config{Resolvers: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}, Dial: s.dns.Dial})
	return listjudge.Checker{
		Store: set, Unwrap: sender.SRS | sender.BATV,
		Prover: func() listjudge.Prover { return proofs.Message() },
	}, proofs
}

// listStep plays a step, and reports whether it is one of these:
//
//	signed DOMAIN BYTES   the client sends a message that a domain has signed, and the final dot
//	forged DOMAIN BYTES   the same, changed after it was signed
//	dns fail              from now on the name server answers SERVFAIL
//	asked NAME            the name server was asked about such a name, '*' allowed; "asked !NAME" for none
//
// "message [signed]" compares a delivered message with the last one that was sent so.
func (d *dialogue) listStep(l smtptest.Line) (known bool, err error) {
	switch l.Verb {
	case "signed", "forged":
		domain, text, _ := strings.Cut(l.Text, " ")
		d.signed, err = signed(domain, smtptest.Expand(text))
		if l.Verb == "forged" {
			d.signed += "more\r\n"
		}
		_, sent := d.client.Conn.Write([]byte(strings.ReplaceAll(d.signed, "\n.", "\n..") + ".\r\n"))
		return true, errors.Join(err, sent)
	case "dns":
		d.lists.dns.Behave(dnstest.Behavior{Fail: true})
		return true, nil
	case "asked":
		name, none := strings.CutPrefix(l.Text, "!")
		asked := slices.ContainsFunc(d.lists.dns.Asked(), func(q string) bool { return smtptest.Match("* "+name+" *", q) })
		if asked == none {
			return true, fmt.Errorf("asked %q", d.lists.dns.Asked())
		}
		return true, nil
	}
	return false, nil
}

// signed returns a message with a signature of a domain before it.
func signed(domain, message string) (string, error) {
	var b strings.Builder
	err := dkim.Sign(&b, strings.NewReader(message), &dkim.SignOptions{Domain: domain, Selector: "s", Signer: listKey})
	return b.String(), err
}
