package world

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// mailGate is the proxy, the milter and the policy service of a gate. It is kept for some worlds, and
// has the lists and the policy of one configuration at a time.
type mailGate struct {
	served atomic.Pointer[blocklist.Set]
	hop    *mailHop
	proofs *proofs
	proxy  *proxy
	doors  []entrance // all three
	ends   []func()
}

// close ends what serves.
func (g *mailGate) close() {
	for _, end := range g.ends {
		end()
	}
}

// serve serves until close.
func (g *mailGate) serve(serve func() error, shutdown func(context.Context) error) {
	served := make(chan error, 1)
	go func() { served <- serve() }()
	g.ends = append(g.ends, func() {
		check(shutdown(context.Background()))
		check(<-served)
	})
}

func newMailGate() *mailGate {
	g := &mailGate{hop: &mailHop{}, proofs: &proofs{}}
	first := g.prepare(&configuration{})
	g.served.Store(first.lists)
	server := smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"})
	g.proxy = &proxy{mailGate: g, clients: make(memoryListener)}
	g.proxy.listener = must(server.Listen(g.proxy.clients, "", first.settings))
	g.serve(g.proxy.listener.Serve, server.Shutdown)
	g.doors = []entrance{g.proxy, newMilter(g, first), newPolicyService(g, first)}
	return g
}

// Set returns the lists that are served.
func (g *mailGate) Set() *blocklist.Set { return g.served.Load() }

// prepared is what a gate with a configuration has.
type prepared struct {
	lists    *blocklist.Set
	settings smtpfilter.Settings
}

// apply makes a door's lists and policy those of a configuration.
func (g *mailGate) apply(d entrance, p prepared) {
	g.served.Store(p.lists)
	d.apply(p.settings)
}

// listKeys are the same in each run.
var listKeys = blocklist.NewKeys(make([]byte, blocklist.SecretSize))

// parts returns what a Set needs of a list.
func (l *list) parts() blocklist.SetList {
	r := blocklist.SetList{List: blocklist.List{
		Name: l.name, Action: verdict.ActionOf(l.action.String()), HeaderAction: verdict.ActionOf(l.headerAction.String()),
		Override: l.override, PerRecipient: l.perRecipient,
	}}
	if l.allow {
		r.Type = blocklist.Allow
	}
	for stage, on := range map[verdict.Stage]bool{verdict.Envelope: l.envelope, verdict.Header: l.header} {
		if on {
			r.Stages |= stage
		}
	}
	for proof, on := range map[verdict.Proofs]bool{verdict.SPF: l.spf, verdict.DKIM: l.dkim} {
		if on {
			r.ProvenBy |= proof
		}
	}
	options := listfile.Options{Allow: l.allow, Exact: l.exact, PerRecipient: l.perRecipient, Discard: r.Action.Drops()}
	r.Index = indexOf(l.lines, options)
	return r
}

// indexes are kept: many worlds have the same lists.
var indexes = map[string]*blocklist.Index{}

// indexOf returns the index of a list's lines.
func indexOf(lines []string, o listfile.Options) *blocklist.Index {
	key := fmt.Sprint(o.Allow, o.Exact, o.PerRecipient, o.Discard, lines)
	if x := indexes[key]; x != nil {
		return x
	}
	if len(indexes) == 2000 {
		clear(indexes)
	}
	b := segment.NewBuilder(segment.BuildOptions{Key: listKeys.Segment()})
	adder := b.Adder()
	for i, line := range lines {
		if e, ok := listfile.ParseLine(line, o); ok {
			check(adder.Add(segment.Entry{For: e.For, Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Line: i + 1}))
		}
	}
	indexes[key] = blocklist.NewIndex(must(b.Finish(context.Background(), "", segment.Header{})), []string{"list"}, nil)
	return indexes[key]
}

// set returns the lists of a configuration.
func (c *configuration) set() *blocklist.Set {
	s := blocklist.SetConfig{Filter: blocklist.Filter{Kind: blocklist.KindSized, FPR: 0.1}, Monitor: c.monitor, Keys: listKeys, Generation: 1}
	for i := range c.lists {
		s.Lists = append(s.Lists, c.lists[i].parts())
	}
	return must(blocklist.NewSet(context.Background(), s))
}

// faulty is a Checker of lists that cannot be asked about some senders and recipients.
type faulty struct {
	judge.Checker
	faults []outage
}

func (c faulty) Judge() verdict.Judge { return faultyJudge{c.Checker.Judge().(wholeJudge), c.faults} }

type wholeJudge interface {
	verdict.RecipientJudge
	verdict.ProofJudge
}

type faultyJudge struct {
	wholeJudge
	faults []outage
}

func (j faultyJudge) KeysOf(r verdict.Recipient) ([]string, error) {
	for _, f := range j.faults {
		if f.keys && f.rcpt == r.Path {
			return nil, fmt.Errorf("%w: no keys", verdict.ErrNoAnswer)
		}
	}
	return j.wholeJudge.KeysOf(r)
}

func (j faultyJudge) Judge(ctx context.Context, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	for _, f := range j.faults {
		if q.Reading == verdict.ReadAddress && f.about(q.Stage == verdict.Header, q.Address) && (f.rcpt == "" || slices.Contains(q.For.Keys, f.rcpt)) {
			return verdict.Verdict{}, fmt.Errorf("%w: damaged", verdict.ErrNoAnswer)
		}
	}
	return j.wholeJudge.Judge(ctx, m, q)
}

// prepare returns what the gate has with a configuration.
func (g *mailGate) prepare(w *configuration) prepared {
	policy := smtpfilter.Policy{
		HeaderFields:     []string{"From", "Sender", "Reply-To"},
		CheckBounces:     w.checkBounces,
		ExemptRecipients: w.exemptRecipients,
	}
	if w.exemptClient {
		policy.ExemptClients = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	if w.tagMixed {
		policy.MixedHeaders = smtpfilter.MixedTag
	}
	for i, r := range w.rules {
		policy.Recipients = append(policy.Recipients, smtpfilter.RecipientRule{
			Name: fmt.Sprint("rule", i), Match: smtpfilter.NewRecipientSet(slices.Values(r.keys())).Has,
			Exempt: r.exempt, Lists: r.lists, MaxAction: verdict.ActionOf(r.maxAction.String()), Monitor: r.monitor,
		})
	}
	return prepared{w.set(), smtpfilter.Settings{
		Checker: faulty{g.checker(w), w.faults}, NextHop: g.hop, Policy: policy, Signatures: g.proofs,
		NoNames: true, Rules: wire.Rules{MaxErrors: 1 << 30, MaxRefusals: 1 << 30},
	}}
}

// text returns a message as it is sent, without dot-stuffing.
func (m *message) text() []byte {
	var b bytes.Buffer
	for _, f := range m.fields {
		b.WriteString(f.name + ": ")
		for i, a := range f.addresses {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString("<" + a.written + ">")
		}
		b.WriteString("\r\n")
	}
	for _, s := range m.signatures {
		b.WriteString("DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=" + s.domain + "; s=s; h=From; bh=AA==; b=AA==\r\n")
	}
	b.WriteString("Subject: a test\r\n\r\n.a line\r\n..\r\nthe end\r\n")
	return b.Bytes()
}

// observed is what a gate did with a message.
type observed struct {
	rcpts   []wire.Reply
	message wire.Reply // zero if no recipient was accepted
	hopHas
	faults []string
}

// The parameters of MAIL and RCPT, which the next hop gets, too (RFC 3461).
const mailParams = "RET=HDRS ENVID=e1"

func rcptParams(to string) string {
	return "NOTIFY=DELAY ORCPT=rfc822;" + strings.ReplaceAll(to, "+", "+2B")
}

var (
	listPart  = regexp.MustCompile(`\blist (l?[a-z0-9]+)\b`)
	byWayPart = regexp.MustCompile(`^\S+ <([^>]*)> by way of <[^>]*> `)
	tagPart   = regexp.MustCompile(`(?m)^X-Spamgate: listed; list=([a-z0-9]+)`)
)

// short returns what the model says of a reply.
func short(r wire.Reply) reply {
	s := reply{code: r.Code}
	if r.Positive() {
		return s
	}
	text := strings.Join(r.Lines, " ")
	if m := listPart.FindStringSubmatch(text); m != nil {
		s.list = m[1]
	}
	if m := byWayPart.FindStringSubmatch(text); m != nil {
		s.sender = strings.ToLower(m[1])
	}
	return s
}

// differs returns what is not as the model says, "" if all is.
func (o observed) differs(want outcome, m *message) string {
	diff := o.differsFrom(want, m)
	if diff != "" && want.or != nil {
		want.or.rcpts = want.rcpts
		if o.differsFrom(*want.or, m) == "" {
			return ""
		}
	}
	return diff
}

func (o observed) differsFrom(want outcome, m *message) string {
	for i, r := range o.rcpts {
		if got := short(r); got != want.rcpts[i] {
			return fmt.Sprintf("RCPT TO:<%s>: %q, want %s", m.rcpts[i], r, want.rcpts[i])
		}
	}
	if len(o.faults) > 0 {
		return strings.Join(o.faults, "\n")
	}
	if want.message == nil {
		return ""
	}
	if got := short(o.message); !slices.Contains(want.message, got) {
		return fmt.Sprintf("the message: %q, want %s", o.message, want.message)
	}
	advises := strings.Contains(o.message.String(), "send it to the others alone")
	if want.refused() && !want.unsure && advises != want.mixed {
		return fmt.Sprintf("the message: %q, and some would take it: %v", o.message, want.mixed)
	}
	if want.refused() && !want.anyPhase && (o.opened > 0) != (want.phase == atBody) {
		return fmt.Sprintf("refused with %d messages opened at the next hop, and the decision falls at %s", o.opened, want.phase)
	}
	if len(want.delivered) == 0 {
		if len(o.delivered) > 0 {
			return fmt.Sprintf("delivered to %s, want nobody", o.delivered[0].to)
		}
		return ""
	}
	if len(o.delivered) != 1 || !slices.Equal(unique(o.delivered[0].to), unique(want.delivered)) {
		return fmt.Sprintf("delivered %+v, want to %s", o.delivered, want.delivered)
	}
	d := o.delivered[0]
	var tags []string
	for _, tag := range tagPart.FindAllSubmatch(d.text, -1) {
		tags = append(tags, string(tag[1]))
	}
	for _, l := range want.tags {
		// A message that is passed on before the decision has one of several tags.
		if !slices.Contains(tags, l) && (want.phase != atBody || len(tags) == 0) {
			return fmt.Sprintf("tags %s, want %s", tags, want.tags)
		}
	}
	for _, l := range tags {
		if !slices.Contains(want.tags, l) && !slices.Contains(want.mayTags, l) {
			return fmt.Sprintf("tags %s, want %s", tags, want.tags)
		}
	}
	return ""
}
