package smtpfilter

import (
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
)

// RecipientRule says what counts for some recipients.
type RecipientRule struct {
	// Name names the rule in logs and tools.
	Name string

	// Match reports whether the rule is for a recipient.
	Match func(verdict.Recipient) bool

	// Exempt makes the recipients reachable by every sender.
	Exempt bool

	// Lists are the names of the lists that count; nil means all.
	Lists []string

	// MaxAction bounds the action of listed senders; Accept means no bound. With Tag the
	// recipients get all mail.
	MaxAction verdict.Action

	// Monitor makes every list only log.
	Monitor bool
}

// MixedHeaders says what becomes of a message if the senders in its header are refused for
// some recipients only.
type MixedHeaders uint8

const (
	// MixedRefuse refuses it for all, so that nobody gets listed mail to all recipients by
	// adding one that takes it.
	MixedRefuse MixedHeaders = iota

	// MixedTag tags it for all.
	MixedTag
)

// RuleOf returns the first rule that is for a recipient, nil if none is.
func (p *Policy) RuleOf(rcpt verdict.Recipient) *RecipientRule {
	for i := range p.Recipients {
		if r := &p.Recipients[i]; r.Match(rcpt) {
			return r
		}
	}
	return nil
}

// apply makes of a verdict what counts for the rule's recipients.
func (r *RecipientRule) apply(v *verdict.Verdict) {
	if !r.Monitor && r.MaxAction == verdict.Accept {
		return
	}
	pending, ifProved, proofs := v.Pending, v.Proved, v.Proofs
	r.bound(v)
	if ifProved != nil {
		proved := *ifProved
		r.bound(&proved)
		v.Pending, v.Proved, v.Proofs = pending, &proved, proofs // the domains whose signatures are verified
		if proved.Action == v.Action && proved.ClearsMessage == v.ClearsMessage && proved.MayClear == v.MayClear {
			v.Pending, v.Proved = false, nil // the bound leaves nothing to wait for
		}
	}
}

// bound applies the rule to a verdict without what is pending.
func (r *RecipientRule) bound(v *verdict.Verdict) {
	switch {
	case r.Monitor && v.Would == nil:
		v.Pending, v.Proved = false, nil
		*v = v.Monitor()
		v.Monitored = slices.DeleteFunc(v.Monitored, func(m verdict.Match) bool { return m.Shielded })
	case r.MaxAction != verdict.Accept:
		v.Action = min(v.Action, r.MaxAction)
	}
}

// A mail server delivers some forms of an address to a recipient who has another address:
// "ann", ann@[192.0.2.1], ann%example.net@sales.example.net. A client must not choose by such a
// form what counts for ann. So these recipients get no policy, and no exemption of a domain. The
// strictest verdict counts of those for a recipient without a say, for the address as it was
// written, and for each recipient that the server may make of it.

// Ambiguous reports whether a mail server may deliver to another address than that of the
// recipient: it has no domain, or the address of a host in its place, or a local part that may
// be a route to another domain.
func Ambiguous(rcpt verdict.Recipient) bool {
	return rcpt.Domain == "" || isHost(rcpt.Domain) || mayRoute(rcpt)
}

// mayRoute reports whether a server may read the local part as a route to another domain.
func mayRoute(rcpt verdict.Recipient) bool { return strings.ContainsAny(rcpt.LocalPart(), "%!@:") }

// isHost reports whether a domain is the IP address of a host, in brackets or without them.
func isHost(domain string) bool {
	switch last := domain[len(domain)-1]; {
	case last == ']':
		return true
	case last < '0' || last > '9':
		return false
	}
	_, err := netip.ParseAddr(domain)
	return err == nil
}

// maxRecipientReadings bounds the recipients that are made of routes. A server needs three of
// them: it splits at the first or the last operator.
const maxRecipientReadings = 16

// recipientReadings returns the recipients that a mail server may make of an ambiguous one.
func (p *Policy) recipientReadings(rcpt verdict.Recipient) []verdict.Recipient {
	found := []string{rcpt.Path}
	for i := 0; i < len(found) && len(found) <= maxRecipientReadings; i++ {
		for _, reading := range routesOf(found[i]) {
			if !slices.Contains(found, reading) {
				found = append(found, reading)
			}
		}
	}
	var readings []verdict.Recipient
	for _, address := range found {
		r := verdict.ParseRecipient(address)
		readings = append(readings, r)
		if (r.Domain == "" || isHost(r.Domain)) && !mayRoute(r) {
			readings = append(readings, p.completed(r)...)
		}
	}
	return readings
}

// routesOf returns the addresses to which a local part may be a route.
func routesOf(address string) []string {
	if !strings.Contains(address, "@") {
		address += "@"
	}
	routes := header.Routes(address)
	local, err := sender.NormalizeLocal(address[:strings.LastIndexByte(address, '@')])
	if err != nil {
		local = address[:strings.LastIndexByte(address, '@')]
	}
	if len(local) > 1 && local[0] == '"' {
		local = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(local[1 : len(local)-1])
	}
	if strings.ContainsAny(local, "@:") { // user@host, or @host:user@host
		inner := local[strings.LastIndexByte(local, ':')+1:]
		if pos := strings.LastIndexByte(inner, '@'); pos >= 0 {
			inner = sender.QuoteLocal(inner[:pos]) + inner[pos:]
		}
		routes = append(routes, inner)
	}
	return routes
}

// completed returns a recipient with each of the server's domains in place of its own.
func (p *Policy) completed(rcpt verdict.Recipient) []verdict.Recipient {
	local, domains := rcpt.LocalPart(), p.domainSet().Names()
	if p.OwnDomains != nil {
		domains = p.OwnDomains().Names()
	}
	var all []verdict.Recipient
	for _, d := range domains[:min(len(domains), maxCompletions)] {
		all = append(all, verdict.ParseRecipient(local+"@"+strings.TrimPrefix(d, ".")))
	}
	return all
}

// sayOfAmbiguous returns what an ambiguous recipient has a say in, see above. An exemption stands that
// names the local part at every domain, or the address of the host.
func (j *Judgement) sayOfAmbiguous(rcpt verdict.Recipient) (say, error) {
	exempt := rcpt
	if mayRoute(rcpt) {
		exempt.Domain = ""
	}
	finder := say{exempt: j.Policy.ExemptRecipient(exempt)}
	keeper, ok := j.Judge.(verdict.RecipientJudge)
	if !ok || finder.exempt {
		return finder, nil
	}
	for _, reading := range j.Policy.recipientReadings(rcpt) {
		keys, err := keeper.KeysOf(reading)
		if err != nil {
			return finder, err
		}
		if keys != nil && !slices.ContainsFunc(finder.to.Others, func(o []string) bool { return slices.Equal(o, keys) }) {
			finder.to.Others = append(finder.to.Others, keys)
		}
	}
	return finder, nil
}

// keysText returns what tells recipients apart for the lists with entries for recipients. No
// key has a line feed.
func keysText(to *verdict.For) string {
	text := strings.Join(to.Keys, "\n")
	for _, keys := range to.Others {
		text += "\n\t\n" + strings.Join(keys, "\n")
	}
	return text
}

// stricter reports whether a verdict is stricter than another one.
func stricter(a, b *verdict.Verdict) bool {
	switch {
	case a.Action != b.Action:
		return a.Action > b.Action
	case a.Pending != b.Pending:
		return b.Pending
	}
	return b.ClearsMessage && !a.ClearsMessage || b.MayClear && !a.MayClear
}
