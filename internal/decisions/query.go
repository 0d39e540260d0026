package decisions

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

// Match reports whether a decision is wanted. Limit and Before do not count.
func (q *Query) Match(d *Decision) bool {
	if q.RecipientDomains != nil && !slices.ContainsFunc(d.Recipients, q.own) {
		return false
	}
	return (q.Since.IsZero() || !d.Time.Before(q.Since)) &&
		(q.Until.IsZero() || d.Time.Before(q.Until)) &&
		(q.ID == "" || foldID(q.ID) == foldID(d.ID)) &&
		(q.List == "" || q.List == d.List) &&
		(q.Action == "" || q.Action == d.Action) &&
		(q.Client == "" || foldClient(q.Client) == foldClient(d.Client)) &&
		(q.Sender == "" || hasSender(d, foldAddress(q.Sender))) &&
		(q.Recipient == "" || q.hasRecipient(d, foldAddress(q.Recipient))) &&
		(q.Address == "" || hasSender(d, foldAddress(q.Address)) || q.hasRecipient(d, foldAddress(q.Address))) &&
		(q.Domain == "" || hasDomain(d, foldDomain(q.Domain)))
}

// Cut removes from a decision what the reader of the Query may not see, and reports whether
// something is left.
func (q *Query) Cut(d *Decision) bool {
	if q.RecipientDomains == nil {
		return true
	}
	all := len(d.Recipients) + d.MoreRecipients
	d.Recipients = slices.DeleteFunc(slices.Clone(d.Recipients), func(r string) bool { return !q.own(r) })
	d.MoreRecipients = 0
	if len(d.Recipients) < all {
		d.Reply = "" // it may name the others
	}
	d.Attrs = slices.DeleteFunc(slices.Clone(d.Attrs), func(a Attr) bool { return !slices.Contains(shownToAll, a.Key) })
	return len(d.Recipients) > 0
}

// shownToAll are the attributes that name no recipients. [Query.Cut] keeps only these.
var shownToAll = []string{
	"tls", "server", "queue_id", "forwarded_for", "authenticated", "identity", "sender", "form", "by_way_of",
	"proof", "unproven", "would", "generation",
}

// selective reports whether the query asks for more than a span of time.
func (q *Query) selective() bool {
	return q.ID != "" || q.Address != "" || q.Sender != "" || q.Recipient != "" || q.Domain != "" || q.List != "" ||
		q.Action != "" || q.Client != "" || q.RecipientDomains != nil
}

// own reports whether a recipient is at one of the RecipientDomains.
func (q *Query) own(recipient string) bool {
	domain := domainOf(foldAddress(recipient))
	return slices.ContainsFunc(q.RecipientDomains, func(d string) bool { return foldDomain(d) == domain })
}

func (q *Query) hasRecipient(d *Decision, folded string) bool {
	return slices.ContainsFunc(d.Recipients, func(r string) bool {
		return foldAddress(r) == folded && (q.RecipientDomains == nil || q.own(r))
	})
}

func hasSender(d *Decision, folded string) bool {
	for s := range senders(d) {
		if s == folded {
			return true
		}
	}
	return false
}

func hasDomain(d *Decision, domain string) bool {
	for s := range senders(d) {
		if name := domainOf(s); name == domain || strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	return false
}

// senders yields the folded senders of a decision.
func senders(d *Decision) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(foldAddress(d.Sender)) {
			return
		}
		for _, s := range d.HeaderSenders {
			if !yield(foldAddress(s)) {
				return
			}
		}
	}
}

func foldID(id string) string { return strings.ToLower(clean(id)) }

// foldAddress returns the form in which addresses are compared.
func foldAddress(address string) string {
	if address == "" || address == nullSender {
		return nullSender
	}
	if a, err := sender.Parse(address); err == nil {
		return a.String()
	}
	return strings.ToLower(clean(address))
}

// foldDomain returns the form in which domains are compared.
func foldDomain(domain string) string {
	if d, err := sender.NormalizeDomain(domain); err == nil {
		return d
	}
	return strings.ToLower(clean(domain))
}

// domainOf returns the domain of a folded address, or "".
func domainOf(folded string) string {
	if pos := strings.LastIndexByte(folded, '@'); pos >= 0 {
		return folded[pos+1:]
	}
	return ""
}

// foldClient returns the form in which clients are compared: the address without its port.
func foldClient(client string) string {
	if a, err := netip.ParseAddrPort(client); err == nil {
		return a.Addr().Unmap().String()
	}
	if a, err := netip.ParseAddr(client); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(clean(client))
}
