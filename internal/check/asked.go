package check

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// dnsAnswer is what a list in DNS said of a domain.
type dnsAnswer struct {
	List    string `json:"list"`
	Zone    string `json:"zone"`
	Domain  string `json:"domain"`
	Listed  string `json:"listed,omitempty"` // the domain, or a parent of it
	Codes   string `json:"codes,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Unknown string `json:"unknown,omitempty"` // why there is no answer
}

func newDNSAnswer(list, domain, zone string, a blocklist.Answer) dnsAnswer {
	return dnsAnswer{List: list, Zone: zone, Domain: domain, Listed: a.Name, Codes: a.Note, Reason: a.Reason, Unknown: a.Unknown}
}

// answers is an Asker that notes what lists in DNS say about one address or message.
type answers struct {
	judge.Asker
	session *session

	mu  sync.Mutex
	all []dnsAnswer
}

// Result implements judge.Asker.
func (n *answers) Result(ctx context.Context, list, domain string) blocklist.Answer {
	a := n.Asker.Result(ctx, list, domain)
	n.mu.Lock()
	defer n.mu.Unlock()
	noted := newDNSAnswer(list, domain, n.session.zoneOf(list), a)
	if noted.Unknown != "" {
		noted.Unknown = n.session.whyUnknown(list, noted.Unknown)
	}
	if !slices.Contains(n.all, noted) {
		n.all = append(n.all, noted)
	}
	return a
}

// asks reports whether the session asks lists in DNS.
func (k *session) asks() bool { return k.dns != nil && k.judge.View().Asks(verdict.AllStages) }

// lists returns the Judge of a message, which asks or knows more than that of the lists.
type lists func() verdict.Judge

// Judge implements verdict.Checker.
func (l lists) Judge() verdict.Judge { return l() }

// newJudge returns the Judge for an address or a message.
func (k *session) newJudge() verdict.Judge {
	k.answers = nil
	p := k.newProver()
	if !k.asks() {
		if p == nil {
			return k.judge
		}
		return judge.NewAsking(k.judge, nil, p)
	}
	k.answers = &answers{Asker: setup.Askers(k.dns)(), session: k}
	return judge.NewAsking(k.judge, k.answers, p)
}

// traceStage traces the decision about an address at one stage for recipients: the address, and
// the senders within.
func (k *session) traceStage(ctx context.Context, stage verdict.Stage, address string, to verdict.For) ([]blocklist.Trace, error) {
	m := k.facts(reversePath(address))
	q := verdict.Query{Stage: stage, Address: address, For: to}
	return k.newJudge().(tracer).Trace(ctx, &m, q)
}

// tracer is a Judge that shows its steps.
type tracer interface {
	Trace(ctx context.Context, m *verdict.Message, q verdict.Query) ([]blocklist.Trace, error)
}

// answered returns what lists in DNS said about the last address or message.
func (k *session) answered() []dnsAnswer {
	if k.answers == nil {
		return nil
	}
	return k.answers.all
}

// printAnswers prints what lists in DNS said. It also says if they were not asked.
func (k *session) printAnswers() {
	for _, a := range k.answered() {
		k.printDNSAnswer(a)
	}
	if n := len(k.judge.View().Asked(verdict.AllStages)); n > 0 && k.dns == nil {
		fmt.Fprintf(k.out, "  %-9s %s in DNS, because of %s\n", "not asked", text.Count(n, "list", "lists"), k.argument("offline"))
	}
}

func (k *session) printDNSAnswer(a dnsAnswer) {
	fmt.Fprintf(k.out, "  %-9s list %s (%s) about %s\n", "asked", a.List, a.Zone, a.Domain)
	switch {
	case a.Unknown != "":
		term.PrintWrapped(k.out, "            no answer: ", a.Unknown)
	case a.Listed == "":
		fmt.Fprintf(k.out, "  %-9s not listed\n", "")
	default:
		fmt.Fprintf(k.out, "  %-9s listed: %s, %s%s\n", "", a.Listed, a.Codes, term.InBrackets(a.Reason))
	}
}

// zoneOf returns the zone of a list as it may be shown.
func (k *session) zoneOf(list string) string {
	i := setup.ListIndex(k.config, list)
	if i < 0 {
		return ""
	}
	return text.ShownZone(k.config.Lists[i].DNSZone)
}

// whyUnknown returns the cause with what the client knows about a list that it does not ask.
func (k *session) whyUnknown(list, cause string) string {
	for _, s := range k.dns.Status() {
		if s.Name == list && s.Reason != "" {
			return cause + ": " + s.Reason
		}
	}
	return cause
}
