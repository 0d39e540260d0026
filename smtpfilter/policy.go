package smtpfilter

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
)

// Policy says whom the lists apply to, and how a refusal reads. The zero Policy
// judges every envelope sender and no header, and exempts only postmaster.
type Policy struct {
	// HeaderFields names the fields whose addresses are judged: "From".
	HeaderFields []string

	// MaxHeaderBytes is the longest header section taken, 0 for 256 KiB.
	MaxHeaderBytes int

	// MaxAddresses is the number of sender addresses that the fields may hold,
	// 0 for 1000. What servers may make addresses of counts, too, but not words
	// beside an address.
	MaxAddresses int

	// CheckBounces judges the header of messages with the null reverse-path,
	// too.
	CheckBounces bool

	// RecipientDomains are the domains that mail is taken for, in normal form;
	// one with a dot in front means its subdomains, too. Empty means all.
	RecipientDomains []string

	// ExemptRecipients are reachable by every sender: "user@",
	// "user@domain" or "@domain", in normal form. The local part postmaster
	// always is (RFC 5321, section 4.5.1).
	ExemptRecipients []string

	// ExemptClients are not looked up at all.
	ExemptClients []netip.Prefix

	// ExemptAuthenticated leaves the senders of authenticated clients unlooked at:
	// of those whose AUTH has succeeded here, and of those whose login a trusted
	// proxy has told (XCLIENT LOGIN).
	ExemptAuthenticated bool

	// MaxHops is the number of Received fields that a message may come with, 0
	// for 100 (RFC 5321, section 6.3).
	MaxHops int

	// Tarpit is how long the refusal of a listed sender is held back, but not
	// from TarpitExempt.
	Tarpit       time.Duration
	TarpitExempt []netip.Prefix

	// MaxRecipients is the number of recipients that a message may have, 0
	// for 1000. RFC 5321, section 4.5.3.1.8 asks for 100 at least.
	MaxRecipients int

	// RejectText is the template of a refusal, "" for DefaultRejectText.
	RejectText string

	// Contact is what a refusal ends with: how to reach somebody about it.
	Contact string

	domains domainSet // of RecipientDomains; set by Validate
}

const (
	defaultMaxHeaderBytes = 256 << 10
	defaultMaxAddresses   = 1000
	defaultMaxRecipients  = 1000
	defaultMaxHops        = 100
)

// HeaderLimit is the longest header section taken, in bytes.
func (p *Policy) HeaderLimit() int {
	if p.MaxHeaderBytes == 0 {
		return defaultMaxHeaderBytes
	}
	return p.MaxHeaderBytes
}

// AddressLimit is the number of sender addresses that a header may hold.
func (p *Policy) AddressLimit() int {
	if p.MaxAddresses == 0 {
		return defaultMaxAddresses
	}
	return p.MaxAddresses
}

func (p *Policy) maxHops() int {
	if p.MaxHops == 0 {
		return defaultMaxHops
	}
	return p.MaxHops
}

func (p *Policy) maxRecipients() int {
	if p.MaxRecipients == 0 {
		return defaultMaxRecipients
	}
	return p.MaxRecipients
}

// ExemptClient reports whether a client is not looked up.
func (p *Policy) ExemptClient(addr netip.Addr) bool {
	return within(p.ExemptClients, addr)
}

func within(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ExemptRecipient reports whether a recipient is reachable by every sender.
func (p *Policy) ExemptRecipient(rcpt verdict.Recipient) bool {
	if rcpt.Local == "postmaster" {
		return true
	}
	for _, e := range p.ExemptRecipients {
		at := strings.LastIndexByte(e, '@')
		if at < 0 {
			continue
		}
		if l, d := e[:at], e[at+1:]; (l == "" || l == rcpt.Local) && (d == "" || d == rcpt.Domain) {
			return true
		}
	}
	return false
}

// TakesRecipient reports whether mail for a recipient is taken here. Where
// recipient domains are set, so is the ban on local parts that a server may
// read as a route to another domain: user%other.example, other.example!user.
// postmaster without a domain is this host's.
func (p *Policy) TakesRecipient(rcpt verdict.Recipient) bool {
	if len(p.RecipientDomains) == 0 || rcpt.Domain == "" {
		return true
	}
	return !strings.ContainsAny(rcpt.LocalPart(), "%!@:") && p.domainSet().has(rcpt.Domain)
}

// JudgeEnvelope judges the reverse-path.
func (p *Policy) JudgeEnvelope(ctx context.Context, j verdict.Judge, m *verdict.Message) verdict.Finding {
	f := verdict.Finding{Identity: verdict.EnvelopeIdentity, Address: m.ReversePath}
	f.Verdict, f.Err = asker{ctx, j, m}.ask(verdict.Query{Stage: verdict.Envelope, Address: m.ReversePath})
	return f
}

// asker asks a Judge about the senders of one message.
type asker struct {
	ctx     context.Context
	judge   verdict.Judge
	message *verdict.Message
}

// ask judges one sender. If the lists cannot be asked, the sender is deferred.
func (a asker) ask(q verdict.Query) (verdict.Verdict, error) {
	v, err := a.judge.Judge(a.ctx, a.message, q)
	if errors.Is(err, verdict.ErrNoAnswer) {
		v = verdict.Verdict{Action: verdict.Defer}
	}
	return v, err
}

// JudgesHeader reports whether the header of a message is judged: not that of a
// bounce unless wanted, since a bounce must get home, and not where an
// overriding allow list has cleared the message.
func (p *Policy) JudgesHeader(envelope verdict.Finding) bool {
	return len(p.HeaderFields) > 0 &&
		!envelope.Verdict.ClearsMessage &&
		(envelope.Address != "" || p.CheckBounces)
}
