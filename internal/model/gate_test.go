package model

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// gate is a running gate, whose lists and policy can be those of any world.
type gate struct {
	dir      string
	hop      *hop
	proofs   *proofs
	listener *smtpfilter.Listener
	conn     net.Conn
	in       *bufio.Reader
}

func newGate(t testing.TB) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g := &gate{dir: t.TempDir(), hop: &hop{}, proofs: &proofs{}}
	server := smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"})
	g.listener, err = server.Listen(l, "", g.settings(t, &world{}))
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- g.listener.Serve() }()
	g.conn, err = net.Dial("tcp", l.Addr().String())
	must(t, err)
	t.Cleanup(func() {
		g.conn.Close()
		must(t, server.Shutdown(context.Background()))
		must(t, <-served)
	})
	g.in = bufio.NewReader(g.conn)
	g.expect(t, 220)
	g.send(t, "EHLO client.example\r\n")
	g.expect(t, 250)
	return g
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served is a Set that does not change.
type served struct{ set *blocklist.Set }

func (s served) Set() *blocklist.Set { return s.set }

// apply makes the gate's lists and policy those of a world.
func (g *gate) apply(t testing.TB, w *world) {
	t.Helper()
	_, err := g.listener.Apply(g.settings(t, w))
	must(t, err)
}

// config writes the lists of a world into files.
func (g *gate) config(t testing.TB, w *world) store.Config {
	c := store.Config{Filter: blocklist.Filter{Kind: blocklist.KindSized, FPR: 0.1}, Monitor: w.monitor}
	for i := range w.lists {
		l := &w.lists[i]
		path := filepath.Join(g.dir, l.name)
		must(t, os.WriteFile(path, []byte(strings.Join(l.lines, "\n")+"\n"), 0o600))
		sl := store.List{
			Name: l.name, Paths: []string{path}, Action: verdict.ActionOf(l.action.String()), HeaderAction: verdict.ActionOf(l.headerAction.String()),
			Exact: l.exact, Override: l.override, PerRecipient: l.perRecipient,
		}
		if l.allow {
			sl.Type = blocklist.Allow
		}
		if l.envelope {
			sl.Stages |= verdict.Envelope
		}
		if l.header {
			sl.Stages |= verdict.Header
		}
		if l.spf {
			sl.ProvenBy |= verdict.SPF
		}
		if l.dkim {
			sl.ProvenBy |= verdict.DKIM
		}
		c.Lists = append(c.Lists, sl)
	}
	return c
}

// faulty is a Checker of lists that cannot be asked about some senders and recipients.
type faulty struct {
	judge.Checker
	faults []fault
}

func (c faulty) Judge() verdict.Judge { return faultyJudge{c.Checker.Judge().(wholeJudge), c.faults} }

type wholeJudge interface {
	verdict.RecipientJudge
	verdict.ProofJudge
}

type faultyJudge struct {
	wholeJudge
	faults []fault
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

// settings returns the gate's settings in a world.
func (g *gate) settings(t testing.TB, w *world) smtpfilter.Settings {
	t.Helper()
	lists, _, err := store.Build(context.Background(), g.config(t, w))
	must(t, err)
	checker := g.checker(w, lists)
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
	return smtpfilter.Settings{
		Checker: faulty{checker, w.faults}, NextHop: g.hop, Policy: policy, Signatures: g.proofs,
		NoNames: true, Rules: wire.Rules{MaxErrors: 1 << 30, MaxRefusals: 1 << 30},
	}
}

func (g *gate) send(t testing.TB, text string) {
	t.Helper()
	_, err := g.conn.Write([]byte(text))
	must(t, err)
}

// reads a reply.
func (g *gate) reply(t testing.TB) wire.Reply {
	t.Helper()
	must(t, g.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	var r wire.Reply
	for {
		line, err := g.in.ReadBytes('\n')
		must(t, err)
		last, err := r.AppendLine(line)
		must(t, err)
		if last {
			return r
		}
	}
}

func (g *gate) expect(t testing.TB, code int) {
	t.Helper()
	if r := g.reply(t); r.Code != code {
		t.Fatalf("want %d, got %s", code, r)
	}
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
	rcpts     []wire.Reply
	message   wire.Reply
	delivered []delivery
	aborted   []delivery
	opened    int
	faults    []string
}

// run sends a message.
func (g *gate) run(t testing.TB, m *message) observed {
	t.Helper()
	var o observed
	text := m.text()
	g.proofs.about(m, text)
	commands := "MAIL FROM:<" + m.from.written + "> " + mailParams + "\r\n"
	for _, r := range m.rcpts {
		commands += "RCPT TO:<" + r + "> " + rcptParams(r) + "\r\n"
	}
	g.send(t, commands)
	g.expect(t, 250)
	accepted := false
	for range m.rcpts {
		r := g.reply(t)
		o.rcpts = append(o.rcpts, r)
		accepted = accepted || r.Positive()
	}
	if accepted {
		g.send(t, "DATA\r\n")
		g.expect(t, 354)
		g.send(t, string(bytes.ReplaceAll(text, []byte("\n."), []byte("\n..")))+".\r\n")
		o.message = g.reply(t)
	} else {
		g.send(t, "RSET\r\n")
		g.expect(t, 250)
	}
	o.delivered, o.aborted, o.opened = g.hop.take()
	o.faults, g.proofs.faults = g.proofs.faults, nil
	for _, d := range append(slices.Clone(o.aborted), o.delivered...) {
		if e := d.envelope; e.From != m.from.written || strings.Join(e.Params, " ") != mailParams {
			o.faults = append(o.faults, fmt.Sprintf("the next hop has MAIL FROM:<%s> %s", e.From, e.Params))
		}
		for i, to := range d.to {
			if d.params[i] != rcptParams(to) {
				o.faults = append(o.faults, fmt.Sprintf("the next hop has RCPT TO:<%s> %s", to, d.params[i]))
			}
		}
	}
	return o
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
	if !bytes.HasSuffix(d.text, bytes.ReplaceAll(m.text(), []byte("\n."), []byte("\n.."))) {
		return fmt.Sprintf("delivered another text: %q", d.text)
	}
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
