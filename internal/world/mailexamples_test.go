package world

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestExamples checks the model itself, and the gate: the sentences about who may write to whom,
// as small messages whose outcome is written down here.
func TestExamples(t *testing.T) {
	block := func(name string, lines ...string) list {
		return list{name: name, action: reject, envelope: true, header: true, lines: lines}
	}
	allow := func(name string, lines ...string) list {
		return list{name: name, allow: true, envelope: true, header: true, lines: lines}
	}
	with := func(l list, change func(*list)) list { change(&l); return l }
	proof := func(l *list) { l.spf, l.dkim = true, true }
	bySPF := func(l *list) { l.spf = true }
	byDKIM := func(l *list) { l.dkim = true }
	override := func(l *list) { l.override = true }
	personal := func(l *list) { l.perRecipient = true }
	header := func(l *list) { l.envelope = false }
	does := func(a action) func(*list) { return func(l *list) { l.action = a } }

	plain := func(s string) address { return address{s, []string{s}, nil} }
	forwarded := address{
		"SRS0=h=tt=partner.example=ceo@forwarder.example",
		[]string{"srs0=h=tt=partner.example=ceo@forwarder.example", "ceo@partner.example"}, []scheme{srs},
	}
	ceo, clean := plain("ceo@partner.example"), plain("u@clean.example")
	from := func(a ...address) []field { return []field{{"From", a}} }
	signed := func(domain string, f fact) []signature { return []signature{{domain, f}} }

	signed2 := func(a, b string) []signature { return append(signed(a, holds), signed(b, holds)...) }
	g := newMailGate()
	defer g.close()
	g.proxy.open()
	defer g.proxy.close()

	ann, bob := "ann@m.example", "bob@m.example"
	for _, tt := range []struct {
		name string
		w    configuration
		m    message
		want string
	}{
		{"no list knows anybody", configuration{}, message{from: ceo}, "250; 250 ann"},
		{"refused at RCPT", configuration{lists: []list{block("b", "partner.example")}}, message{from: ceo}, "550 b"},
		{
			"who wrapped a blocked sender is refused because of him",
			configuration{srs: true, lists: []list{block("b", "partner.example")}}, message{from: forwarded},
			"550 b ceo@partner.example",
		},
		{"and not without unwrap", configuration{lists: []list{block("b", "partner.example")}}, message{from: forwarded}, "250; 250 ann"},
		{
			"an allowed sender in a blocked domain passes forwarded as he does directly",
			configuration{srs: true, lists: []list{block("b", "partner.example"), allow("a", "ceo@partner.example")}},
			message{from: forwarded}, "250; 250 ann",
		},
		{
			"he does not let his forwarder in",
			configuration{srs: true, lists: []list{block("b", "forwarder.example"), allow("a", "ceo@partner.example")}},
			message{from: forwarded}, "550 b",
		},
		{
			"nor by override",
			configuration{srs: true, lists: []list{block("b", "forwarder.example"), with(allow("a", "ceo@partner.example"), override)}},
			message{from: forwarded, fields: from(plain("x@forwarder.example"))}, "550 b",
		},
		{
			"an override of the wrapped sender does not clear the header",
			configuration{srs: true, lists: []list{block("b", "bad.example"), with(allow("a", "ceo@partner.example"), override)}},
			message{from: forwarded, fields: from(plain("x@bad.example"))}, "250; header 550 b",
		},
		{
			"an allowed forwarder shields whom he forwards, however specific the entry",
			configuration{srs: true, lists: []list{block("b", "ceo@partner.example"), allow("a", "forwarder.example")}},
			message{from: forwarded}, "250; 250 ann",
		},
		{
			"an allow entry counts by SPF",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), bySPF)}},
			message{from: ceo, spf: holds, trueClient: true}, "250; 250 ann",
		},
		{
			"not by SPF of a proxy",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), bySPF)}},
			message{from: ceo, spf: holds}, "550 b",
		},
		{
			"SPF proves nobody in the header",
			configuration{lists: []list{with(block("b", "partner.example"), header), with(allow("a", "ceo@partner.example"), bySPF)}},
			message{from: ceo, spf: holds, trueClient: true, fields: from(ceo)}, "250; header 550 b",
		},
		{
			"a temporary error of SPF defers",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), bySPF)}},
			message{from: ceo, spf: unanswered, trueClient: true}, "451 b",
		},
		{
			"a valid signature of attacker.example proves nothing about the partner",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), proof)}},
			message{from: ceo, signatures: signed("attacker.example", holds), fields: from(plain("x@attacker.example"))},
			"250; header 550 b",
		},
		{
			"an aligned one does, at the end of the message",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), proof)}},
			message{from: ceo, signatures: signed("mail.partner.example", holds), fields: from(ceo)},
			"250; body 250 ann",
		},
		{
			"unless it is not valid",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), proof)}},
			message{from: ceo, signatures: signed("partner.example", fails), fields: from(ceo)},
			"250; body 550 b",
		},
		{
			"or there are two From fields",
			configuration{lists: []list{block("b", "partner.example"), with(allow("a", "ceo@partner.example"), byDKIM)}},
			message{from: ceo, signatures: signed("partner.example", holds), fields: append(from(ceo), from(clean)...)},
			"250; header 550 b",
		},
		{
			"a proof that nothing depends on is not waited for",
			configuration{lists: []list{block("b", "bad.example"), with(allow("a", "ceo@partner.example"), byDKIM)}},
			message{from: ceo, signatures: signed("partner.example", holds), fields: from(ceo)},
			"250; 250 ann",
		},
		{
			"an exception in a personal list",
			configuration{lists: []list{with(block("b", "@m.example partner.example", ann+" !ceo@partner.example"), personal)}},
			message{from: ceo, rcpts: []string{ann, bob}}, "250 550 b; 250 ann",
		},
		{
			"a line for a recipient beats one for his domain, whatever the sender's side",
			configuration{lists: []list{with(block("b", "@m.example !ceo@partner.example", ann+" partner.example"), personal)}},
			message{from: ceo, rcpts: []string{ann, bob}}, "550 b 250; 250 bob",
		},
		{
			"a lenient recipient does not buy delivery to all",
			configuration{lists: []list{with(block("b", "bad.example"), header)}, rules: []rule{{match: []string{bob}, exempt: true}}},
			message{from: clean, rcpts: []string{ann, bob}, fields: from(plain("x@bad.example"))},
			"250 250; header 550 b",
		},
		{
			"with mixed_headers = tag it comes to all, tagged",
			configuration{tagMixed: true, lists: []list{with(block("b", "bad.example"), header)}, rules: []rule{{match: []string{bob}, exempt: true}}},
			message{from: clean, rcpts: []string{ann, bob}, fields: from(plain("x@bad.example"))},
			"250 250; 250 ann bob; tagged b",
		},
		{
			"the lists of a recipient",
			configuration{lists: []list{block("b", "partner.example")}, rules: []rule{{match: []string{ann}, lists: []string{"c"}}}},
			message{from: ceo, rcpts: []string{ann, bob}}, "250 550 b; 250 ann",
		},
		{
			"max_action",
			configuration{lists: []list{block("b", "partner.example")}, rules: []rule{{match: []string{"m.example"}, maxAction: tag}}},
			message{from: ceo, rcpts: []string{ann}}, "250; 250 ann; tagged b",
		},
		{
			"the first rule counts",
			configuration{lists: []list{block("b", "partner.example")}, rules: []rule{{match: []string{ann}, maxAction: tag}, {match: []string{"m.example"}, monitor: true}}},
			message{from: ceo, rcpts: []string{ann, bob}}, "250 250; 250 ann bob; tagged b",
		},
		{
			"discarded for one, delivered to postmaster",
			configuration{lists: []list{with(block("b", "partner.example"), does(discard))}},
			message{from: ceo, rcpts: []string{ann, "postmaster@m.example"}}, "250 250; 250 postmaster",
		},
		{
			"a bounce's header",
			configuration{lists: []list{with(block("b", "partner.example"), header)}},
			message{from: address{"", []string{""}, nil}, fields: from(ceo)}, "250; 250 ann",
		},
		{
			"a bounce's header with check_bounces",
			configuration{checkBounces: true, lists: []list{with(block("b", "partner.example"), header)}},
			message{from: address{"", []string{""}, nil}, fields: from(ceo)}, "250; header 550 b",
		},
		{
			"monitor", configuration{monitor: true, lists: []list{block("b", "partner.example")}},
			message{from: ceo, fields: from(ceo)}, "250; 250 ann",
		},
		{
			"max_action does not make postmaster's mail worse",
			configuration{lists: []list{block("b", "partner.example")}, rules: []rule{{match: []string{"m.example"}, maxAction: tag}}},
			message{from: ceo, rcpts: []string{"postmaster@m.example"}}, "250; 250 postmaster",
		},
		{
			"discarded by the envelope if a proof does not come, and by the header in any case",
			configuration{srs: true, lists: []list{
				with(block("b", "partner.example", "bad.example"), does(discard)), with(allow("a", "forwarder.example"), byDKIM),
			}},
			message{from: forwarded, signatures: signed("forwarder.example", holds), fields: from(plain("x@bad.example"))},
			"250; 250",
		},
		{
			"refused late for one who would get nothing: nobody gets it, as if it was refused at once",
			configuration{
				lists: []list{
					with(block("d", "clean.example"), does(discard)), with(block("b", ann+" partner.example"), personal),
					with(allow("a", "partner.example"), byDKIM),
				},
				rules: []rule{{match: []string{bob}, exempt: true}},
			},
			message{from: clean, rcpts: []string{ann, bob}, signatures: signed("partner.example", fails), fields: from(ceo)},
			"250 250; body 550 b",
		},
		{
			"two signatures, and each proves one sender",
			configuration{lists: []list{with(block("b", "partner.example", "other.example"), does(deferred)), with(allow("a", "partner.example", "other.example"), byDKIM)}},
			message{
				from: clean, signatures: signed2("partner.example", "other.example"),
				fields: append(from(ceo), field{"Sender", []address{plain("x@other.example")}}),
			},
			"250; body 250 ann",
		},
		{
			"a discard for one of two, when the message is on its way to both",
			configuration{
				lists: []list{with(block("b", "partner.example"), does(discard)), with(allow("a", "partner.example"), byDKIM)},
				rules: []rule{{match: []string{bob}, exempt: true}},
			},
			message{from: ceo, rcpts: []string{ann, bob}, signatures: signed("partner.example", fails), fields: from(ceo)},
			"250 250; body 550 b",
		},
		{
			"a tag that is needed only if the proof comes",
			configuration{lists: []list{
				block("b", "partner.example"), with(block("c", "ceo@partner.example"), does(tag)), with(allow("a", "partner.example"), byDKIM),
			}},
			message{from: ceo, signatures: signed("partner.example", holds), fields: from(ceo)},
			"250; body 250 ann; tagged c",
		},
		{
			"nobody waits for a proof that max_action makes useless",
			configuration{
				lists: []list{block("b", "partner.example"), with(block("c", "ceo@partner.example"), does(deferred)), with(allow("a", "partner.example"), byDKIM)},
				rules: []rule{{match: []string{ann}, maxAction: deferred}, {match: []string{bob}, exempt: true}},
			},
			message{from: ceo, rcpts: []string{ann, bob}, signatures: signed("partner.example", holds), fields: from(clean)},
			"451 b 250; 250 bob",
		},
		{
			"monitor holds for a wrapped sender whose forwarder no list knows",
			configuration{srs: true, monitor: true, lists: []list{block("b", "partner.example")}},
			message{from: forwarded}, "250; 250 ann",
		},
		{
			"a temporary error about an override defers what is in the header",
			configuration{lists: []list{with(block("b", "bad.example"), header), with(with(allow("a", "partner.example"), override), bySPF)}},
			message{from: ceo, spf: unanswered, trueClient: true, fields: from(plain("x@bad.example"))},
			"250; header 451 b",
		},
	} {
		if tt.m.rcpts == nil {
			tt.m.rcpts = []string{ann}
		}
		o := tt.w.decide(&tt.m)
		if got := o.short(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		g.apply(g.proxy, g.prepare(&tt.w))
		if diff := g.proxy.run(&tt.m, &handling{}).differs(o, &tt.m); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// short writes an outcome in a line: the replies to the recipients, and to the message.
func (o outcome) short() string {
	var words []string
	for _, r := range o.rcpts {
		words = append(words, r.String())
	}
	if o.message == nil {
		return strings.Join(words, " ")
	}
	text := strings.Join(words, " ") + "; "
	if o.phase == atBody || o.refused() {
		text += o.phase.String() + " "
	}
	text += o.message[0].String()
	for _, r := range o.delivered {
		local, _, _ := strings.Cut(r, "@")
		text += " " + local
	}
	if len(o.tags) > 0 {
		text += "; tagged " + strings.Join(unique(o.tags), " ")
	}
	return text
}

func unique(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

func (p phase) String() string { return [...]string{"rcpt", "header", "body"}[p] }

func (r reply) String() string {
	return strings.TrimSpace(strings.Join([]string{fmt.Sprint(r.code), r.list, r.sender}, " "))
}
