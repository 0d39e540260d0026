package smtpfilter

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
)

// Policy says which senders are judged, and what a refusal says. The zero Policy judges
// every envelope sender and no header, and exempts only postmaster. Validate normalizes
// its domains and recipients.
type Policy struct {
	// HeaderFields are the names of the fields whose addresses are judged: "From".
	HeaderFields []string

	// MaxHeaderBytes bounds the header section; 0 means 256 KiB.
	MaxHeaderBytes int

	// MaxAddresses bounds the sender addresses in the fields; 0 means 1000. It also
	// counts what servers may turn into addresses, except words beside an address.
	MaxAddresses int

	// MaxFieldBytes bounds each of the fields, with its continuation lines; 0 means 16 KiB.
	MaxFieldBytes int

	// CheckBounces judges the header of messages with the null reverse-path too.
	CheckBounces bool

	// RecipientDomains are the domains that mail is accepted for. A leading dot means
	// the subdomains too. Empty means all domains.
	RecipientDomains []string

	// Domains, if not nil, returns the present recipient domains, in place of
	// RecipientDomains. An empty set means no domain.
	Domains func() *DomainSet

	// OwnDomains, if not nil, returns the domains that may complete a recipient without a
	// domain, in place of the recipient domains, for a door that refuses no domain.
	OwnDomains func() *DomainSet

	// ValidRecipients, if not nil, returns the present set of the recipients that
	// exist. Others are refused, except postmaster and those of authenticated clients.
	ValidRecipients func() *AddressSet

	// ExemptRecipients are reachable by every sender: "user@", "user@domain" or
	// "@domain". The local part postmaster always is (RFC 5321, section 4.5.1).
	ExemptRecipients []string

	// ExemptClients are clients whose senders are not judged.
	ExemptClients []netip.Prefix

	// ExemptAuthenticated exempts authenticated clients too: after AUTH, or if a
	// trusted proxy has sent their login (XCLIENT LOGIN).
	ExemptAuthenticated bool

	// Recipients are the rules for recipients who have a say. The first that is for a
	// recipient counts.
	Recipients []RecipientRule

	// MixedHeaders says what becomes of a message if the senders in its header are refused
	// for some recipients only.
	MixedHeaders MixedHeaders

	// MaxHops bounds the Received fields that a message may arrive with; 0 means 100
	// (RFC 5321, section 6.3).
	MaxHops int

	// Tarpit is how long the refusal of a listed sender is delayed, except for the
	// clients in TarpitExempt.
	Tarpit       time.Duration
	TarpitExempt []netip.Prefix

	// MaxRecipients bounds the recipients of a message; 0 means 1000. RFC 5321,
	// section 4.5.3.1.8 requires at least 100.
	MaxRecipients int

	// RejectText is the template of a refusal; "" means DefaultRejectText.
	RejectText string

	// Contact ends a refusal: how to reach the people who run the gate.
	Contact string

	domains *DomainSet // of RecipientDomains; set by Validate
}

// HeaderLimit returns MaxHeaderBytes or its default.
func (p *Policy) HeaderLimit() int { return cmp.Or(p.MaxHeaderBytes, 256<<10) }

// AddressLimit returns MaxAddresses or its default.
func (p *Policy) AddressLimit() int { return cmp.Or(p.MaxAddresses, 1000) }

// FieldLimit returns MaxFieldBytes or its default.
func (p *Policy) FieldLimit() int { return cmp.Or(p.MaxFieldBytes, 16<<10) }

func (p *Policy) maxHops() int       { return cmp.Or(p.MaxHops, 100) }
func (p *Policy) maxRecipients() int { return cmp.Or(p.MaxRecipients, 1000) }

// ExemptClient reports whether the senders of a client are not judged.
func (p *Policy) ExemptClient(addr netip.Addr) bool { return within(p.ExemptClients, addr) }

// within reports whether one of the prefixes contains the address.
func within(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ExemptRecipient reports whether a recipient is reachable by every sender.
func (p *Policy) ExemptRecipient(rcpt verdict.Recipient) bool {
	if rcpt.Local == "postmaster" {
		return true
	}
	return slices.ContainsFunc(p.ExemptRecipients, func(e string) bool {
		pos := strings.LastIndexByte(e, '@')
		if pos < 0 {
			return false
		}
		local, domain := e[:pos], e[pos+1:]
		return (local == "" || local == rcpt.Local) && (domain == "" || domain == rcpt.Domain)
	})
}

// TakesRecipient reports whether the gate accepts mail for a recipient. With recipient
// domains it refuses local parts that a server may read as a route to another domain:
// user%other.example, other.example!user. postmaster without a domain is always accepted.
func (p *Policy) TakesRecipient(rcpt verdict.Recipient) bool {
	if !p.limitsDomains() || rcpt.Domain == "" {
		return true
	}
	return !mayRoute(rcpt) && p.domainSet().has(rcpt.Domain)
}

// asker asks a Judge about the senders of one message. A Finding has 336 bytes, and a Judge is
// asked deep in the stack of a connection. So the methods fill in a Finding of the caller.
type asker struct {
	ctx     context.Context
	judge   verdict.Judge
	message *verdict.Message
	to      *verdict.For
}

// ask judges one sender, and sets the verdict and the error of the finding. Of several readings
// of the recipient the strictest verdict counts.
func (a *asker) ask(q *verdict.Query, f *verdict.Finding) {
	a.askFor(q, a.to.Keys, f)
	if len(a.to.Others) > 0 {
		a.askOthers(q, f)
	}
}

// askOthers judges one sender for the other readings of the recipient.
func (a *asker) askOthers(q *verdict.Query, f *verdict.Finding) {
	var finding verdict.Finding
	for _, keys := range a.to.Others {
		if f.Err != nil {
			return
		}
		a.askFor(q, keys, &finding)
		if finding.Err != nil || stricter(&finding.Verdict, &f.Verdict) {
			f.Verdict = finding.Verdict
			f.Err = finding.Err
		}
	}
}

// askFor judges one sender. If the lists cannot be asked, the sender is deferred.
func (a *asker) askFor(q *verdict.Query, keys []string, f *verdict.Finding) {
	q.For.Lists, q.For.Keys = a.to.Lists, keys
	f.Verdict, f.Err = a.judge.Judge(a.ctx, a.message, *q)
	if noAnswer(f) {
		f.Verdict = verdict.Verdict{}
		f.Verdict.Action = verdict.Defer
	}
}

// noAnswer is f.NoAnswer without a copy of the finding.
func noAnswer(f *verdict.Finding) bool { return errors.Is(f.Err, verdict.ErrNoAnswer) }
