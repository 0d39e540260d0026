package smtpfilter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
)

// sayJudge is a Judge whose answers depend on the recipient's keys and lists.
type sayJudge struct {
	keys     map[string][]string // by recipient
	verdicts map[string]verdict.Verdict
	asked    []string
}

func (j *sayJudge) Generation() uint64 { return 1 }

func (j *sayJudge) Proofs() verdict.Proofs { return verdict.DKIM }

func (j *sayJudge) KeysOf(r verdict.Recipient) ([]string, error) { return j.keys[r.Path], nil }

// Judge returns the verdict for "address", "address for keys" or "address in lists". What is
// pending is so until the body is known, and then its state is that of the first signature.
func (j *sayJudge) Judge(_ context.Context, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	name := q.Address
	if q.For.Keys != nil {
		name += " for " + strings.Join(q.For.Keys, ",")
	}
	if q.For.Lists != nil {
		name += " in " + strings.Join(q.For.Lists, ",")
	}
	if q.Reading == verdict.ReadWord {
		name += " as a word"
	}
	j.asked = append(j.asked, name)
	v := j.verdicts[name]
	if v.Pending && m.BodyKnown {
		if m.Signatures[0].State == verdict.Proven {
			return *v.Proved, nil
		}
		v.Pending, v.Proved = false, nil
	}
	return v, nil
}

func sayVerdict(a verdict.Action, list string) verdict.Verdict {
	return verdict.Verdict{Action: a, Match: verdict.Match{List: list, Action: a}}
}

// sayLists are the lists of which a Judge answers.
type sayLists struct{ judge verdict.Judge }

func (l sayLists) Judge() verdict.Judge { return l.judge }

// begun returns a message of "e@x" to recipients at net.example, who are taken.
func begun(t *testing.T, policy *Policy, by verdict.Judge, to ...string) *Judgement {
	j := &Judgement{Policy: policy, Message: verdict.Message{ReversePath: "e@x"}}
	j.Begin(t.Context(), sayLists{by}, false)
	for _, local := range to {
		rcpt := verdict.ParseRecipient(local + "@net.example")
		j.Take(rcpt, j.Recipient(rcpt))
	}
	return j
}

// header judges the senders in a header section.
func (j *Judgement) header(section []byte) (found HeaderFindings) {
	j.Header(section, func() []string { return nil }, &found)
	return found
}

// TestClasses: what a message with some recipients comes to, at the end of its header and at its
// end.
func TestClasses(t *testing.T) {
	pending := func(a verdict.Action, list string) verdict.Verdict {
		v := sayVerdict(a, list)
		v.Pending, v.Proved = true, &verdict.Verdict{}
		v.Proofs = []verdict.Proof{{By: verdict.DKIM, State: verdict.ProofPending, Domains: []string{"partner.example"}}}
		return v
	}
	mayClear := verdict.Verdict{MayClear: true}
	cleared := verdict.Verdict{Pending: true, Proved: &verdict.Verdict{ClearsMessage: true}}
	is := func(r string) func(verdict.Recipient) bool {
		return func(rcpt verdict.Recipient) bool { return rcpt.Path == r }
	}
	rules := []RecipientRule{
		{Name: "lenient", Match: is("lenient@net.example"), Exempt: true},
		{Name: "tagging", Match: is("tagging@net.example"), MaxAction: verdict.Tag},
		{Name: "watching", Match: is("watching@net.example"), Monitor: true},
		{Name: "few", Match: is("few@net.example"), Lists: []string{"few"}},
		{Name: "postmaster", Match: is("postmaster@net.example"), MaxAction: verdict.Tag},
	}
	for _, tt := range []struct {
		name     string
		verdicts map[string]verdict.Verdict
		to       string // local parts
		mixed    MixedHeaders
		want     string
		valid    bool   // the signature, if the decision is pending
		atEnd    string // then
	}{
		{"clean", nil, "ann bob", MixedRefuse, "accept", false, ""},
		{"header refused for all", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "bob bill", MixedRefuse, "reject l", false, ""},
		{"a lenient recipient buys nothing", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "bob lenient", MixedRefuse, "reject l mixed", false, ""},
		{"postmaster neither", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "postmaster bob", MixedRefuse, "reject l mixed", false, ""},
		{"all lenient", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "postmaster lenient", MixedRefuse, "accept", false, ""},
		{"tag for all", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "bob lenient", MixedTag, "accept [listed; list=l]", false, ""},
		{"nobody takes it", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "bob bill", MixedTag, "reject l", false, ""},
		{"own list", map[string]verdict.Verdict{"h@x for ann": sayVerdict(verdict.Defer, "own")}, "ann bob", MixedRefuse, "defer own mixed", false, ""},
		{"own list tagged", map[string]verdict.Verdict{"h@x for ann": sayVerdict(verdict.Reject, "own")}, "ann bob", MixedTag, "accept [listed; list=own]", false, ""},
		{"no tag for postmaster", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "postmaster", MixedRefuse, "accept", false, ""},
		{"at most a tag", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "tagging", MixedRefuse, "tag l [listed; list=l]", false, ""},
		{"monitored", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "watching", MixedRefuse, "accept", false, ""},
		{"other lists", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l"), "h@x in few": sayVerdict(verdict.Tag, "few")}, "few", MixedRefuse, "tag few [listed; list=few]", false, ""},
		{"the first one's lists", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Reject, "l")}, "bob few", MixedRefuse, "reject l mixed", false, ""},
		{"strictest", map[string]verdict.Verdict{"h@x": sayVerdict(verdict.Defer, "l"), "h@x for ann": sayVerdict(verdict.Reject, "own")}, "bob ann", MixedRefuse, "reject own", false, ""},
		{"pending, and proven", map[string]verdict.Verdict{"h@x": pending(verdict.Reject, "l")}, "bob", MixedRefuse, "reject l pending", true, "accept"},
		{"pending, and not proven", map[string]verdict.Verdict{"h@x": pending(verdict.Reject, "l")}, "bob", MixedRefuse, "reject l pending", false, "reject l"},
		{"pending reverse-path", map[string]verdict.Verdict{"e@x": pending(verdict.Reject, "l")}, "bob lenient", MixedRefuse, "reject l mixed pending", false, "reject l mixed"},
		{"refused in any case", map[string]verdict.Verdict{"e@x": pending(verdict.Reject, "l"), "h@x": sayVerdict(verdict.Reject, "sure")}, "bob", MixedRefuse, "reject sure", false, ""},
		{"may be cleared", map[string]verdict.Verdict{"e@x": cleared, "h@x": sayVerdict(verdict.Reject, "l")}, "bob", MixedRefuse, "reject l pending", true, "accept"},
		{"may be cleared later", map[string]verdict.Verdict{"e@x": mayClear, "h@x": sayVerdict(verdict.Reject, "l")}, "bob", MixedRefuse, "defer l", false, ""},
		{"exempt from what is pending", map[string]verdict.Verdict{"h@x": pending(verdict.Reject, "l")}, "lenient", MixedRefuse, "accept", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			policy := &Policy{HeaderFields: []string{"From"}, Recipients: rules, MixedHeaders: tt.mixed}
			by := &sayJudge{keys: map[string][]string{"ann@net.example": {"ann"}}, verdicts: tt.verdicts}
			j := begun(t, policy, by, strings.Fields(tt.to)...)
			section := []byte("From: h@x\r\nDKIM-Signature: v=1; a=rsa-sha256; d=partner.example; s=s; h=from; b=; bh=\r\n")
			j.header(section)
			d := *j.Decide()
			if got := describe(d); got != tt.want {
				t.Errorf("at the end of the header: %s, want %s; asked %q", got, tt.want, by.asked)
			}
			if !d.Pending {
				return
			}
			if got := j.Awaited(); !slices.Equal(got, []string{"partner.example"}) && tt.name != "may be cleared" {
				t.Errorf("awaits %q", got)
			}
			state := verdict.NotProven
			if tt.valid {
				state = verdict.Proven
			}
			j.Finish([]verdict.Signature{{Domain: "partner.example", State: state}})
			if got := describe(*j.Decide()); got != tt.atEnd {
				t.Errorf("at the end: %s, want %s", got, tt.atEnd)
			}
		})
	}
}

func describe(d Conclusion) string {
	s := d.Finding.Verdict.Action.String()
	if list := d.Finding.Verdict.Match.List; list != "" {
		s += " " + list
	}
	if d.Mixed {
		s += " mixed"
	}
	if d.Pending {
		s += " pending"
	}
	if d.Tags != nil {
		s += fmt.Sprintf(" %s", d.Tags)
	}
	return s
}

// TestClassesOnce: the senders are judged once for recipients who are alike.
func TestClassesOnce(t *testing.T) {
	by := &sayJudge{keys: map[string][]string{"ann@net.example": {"ann"}, "eve@net.example": {"ann"}}}
	j := begun(t, &Policy{HeaderFields: []string{"From"}}, by, "bob", "bill", "ann", "eve", "postmaster")
	j.header([]byte("From: h@x\r\n"))
	want := []string{"e@x", "e@x for ann", "h@x", "h@x for ann"}
	if !slices.Equal(by.asked, want) {
		t.Errorf("asked %q, want %q", by.asked, want)
	}
}

// TestWordOfPartner: a word in the name of a sender who may yet be proven refuses nothing that it
// would not refuse if he were.
func TestWordOfPartner(t *testing.T) {
	pending := sayVerdict(verdict.Reject, "l")
	pending.Pending, pending.Proved = true, &verdict.Verdict{Match: verdict.Match{List: "partners", Allow: true}}
	pending.Proofs = []verdict.Proof{{By: verdict.DKIM, State: verdict.ProofPending, Domains: []string{"partner.example"}}}
	unasked := verdict.Verdict{Matches: []verdict.Match{{List: "partners", Allow: true, ProvenBy: verdict.DKIM, Unproven: true}}}
	for name, tt := range map[string]struct {
		address verdict.Verdict
		state   verdict.ProofState
		want    string
	}{
		"proven":                {pending, verdict.Proven, "accept partners"},
		"not proven":            {pending, verdict.NotProven, "reject l"},
		"a stranger":            {verdict.Verdict{}, verdict.NotProven, "reject l"},
		"nothing depends on it": {unasked, verdict.NotProven, "accept"},
	} {
		by := &sayJudge{verdicts: map[string]verdict.Verdict{
			"ceo@partner.example": tt.address, "newsletter@ as a word": sayVerdict(verdict.Reject, "l"), "Newsletter@ as a word": sayVerdict(verdict.Reject, "l"),
		}}
		j := begun(t, &Policy{HeaderFields: []string{"From"}}, by, "bob")
		section := []byte("From: Newsletter, Partner <ceo@partner.example>\r\n" +
			"DKIM-Signature: v=1; a=rsa-sha256; d=partner.example; s=s; h=from; b=; bh=\r\n")
		j.header(section)
		if d := j.Decide(); d.Pending != tt.address.Pending {
			t.Errorf("%s: %s; asked %q", name, describe(*d), by.asked)
		}
		j.Finish([]verdict.Signature{{Domain: "partner.example", State: tt.state}})
		if got := describe(*j.Decide()); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestFindingsAwait: each signature that a sender waits for is verified, also those of the second
// sender who is refused alike.
func TestFindingsAwait(t *testing.T) {
	pending := func(domains ...string) verdict.Finding {
		v := sayVerdict(verdict.Reject, "l")
		v.Pending, v.Proved = true, &verdict.Verdict{}
		v.Proofs = []verdict.Proof{{By: verdict.DKIM, State: verdict.ProofPending, Domains: domains}}
		return verdict.Finding{Identity: "From", Verdict: v}
	}
	var h HeaderFindings
	for _, f := range []verdict.Finding{pending("a.example"), pending("b.example"), pending("b.example"), pending("b.example", "c.example")} {
		h.add(&f)
	}
	j := Judgement{taken: []*Class{{Header: h.Deciding}}}
	if got := j.Awaited(); !slices.Equal(got, []string{"a.example", "b.example", "c.example"}) || len(h.Deciding) != 3 {
		t.Errorf("%q, %d findings", got, len(h.Deciding))
	}
}

// TestMonitoredAwaits: recipients whose policy only monitors wait for the signatures that may clear
// the reverse-path, as the others do. If the lists cannot be asked about the header, the message
// depends on them.
func TestMonitoredAwaits(t *testing.T) {
	v := sayVerdict(verdict.Reject, "l")
	v.Pending, v.Proved = true, &verdict.Verdict{ClearsMessage: true}
	v.Proofs = []verdict.Proof{{By: verdict.DKIM, State: verdict.ProofPending, Domains: []string{"partner.example"}}}
	c := Class{Rule: &RecipientRule{Monitor: true}}
	c.Envelope = verdict.Finding{Identity: verdict.EnvelopeIdentity, Verdict: v}
	c.Apply(&c.Envelope)
	c.Header = []verdict.Finding{{Identity: "From", Verdict: verdict.Verdict{Action: verdict.Defer}, Err: verdict.ErrNoAnswer}}
	c.Apply(&c.Header[0])
	j := Judgement{Policy: &Policy{}, taken: []*Class{&c}}
	if got := j.Awaited(); !j.Decide().Pending || !slices.Equal(got, []string{"partner.example"}) {
		t.Errorf("awaits %q: %s", got, describe(*j.Decide()))
	}
}

// TestNoAnswerDecides: with mixed_headers = "tag" a sender whom a list defers does not let in one
// about whom the lists cannot be asked, in either order.
func TestNoAnswerDecides(t *testing.T) {
	unknown := verdict.Finding{Identity: "From", Verdict: verdict.Verdict{Action: verdict.Defer}, Err: verdict.ErrNoAnswer}
	deferred := verdict.Finding{Identity: "From", Verdict: sayVerdict(verdict.Defer, "l")}
	for _, order := range [][]verdict.Finding{{unknown, deferred}, {deferred, unknown}} {
		var h HeaderFindings
		for _, f := range order {
			h.add(&f)
		}
		j := Judgement{Policy: &Policy{MixedHeaders: MixedTag}, taken: []*Class{{}, {Header: h.Deciding}}}
		d := j.Decide()
		if !d.Refuses() || !d.Finding.NoAnswer() {
			t.Errorf("%d findings: %s", len(h.Deciding), describe(*d))
		}
	}
}

// TestClassesCostly: a header that is just not too costly is judged to its end again at the end
// of the message, for every class. Otherwise the listed sender at its end would get in.
func TestClassesCostly(t *testing.T) {
	label := strings.Repeat("a.", 50)
	for _, classes := range []int{1, 2, 40} {
		v := sayVerdict(verdict.Reject, "l")
		v.Pending, v.Proved = true, &verdict.Verdict{}
		v.Proofs = []verdict.Proof{{By: verdict.DKIM, State: verdict.ProofPending, Domains: []string{"partner.example"}}}
		by, to := &sayJudge{keys: map[string][]string{}, verdicts: map[string]verdict.Verdict{"h@x": v}}, make([]string, classes)
		for i := range classes {
			to[i] = fmt.Sprint("r", i)
			by.keys[to[i]+"@net.example"] = []string{to[i]}
			by.verdicts["h@x for "+to[i]] = v
		}
		policy := &Policy{HeaderFields: []string{"Reply-To", "From"}}
		refused, costly := 0, 0
		for n := 10; ; n += 10 {
			section := []byte("Reply-To: ")
			for i := range n {
				section = fmt.Appendf(section, "a%d@%sexample,\r\n\t", i, label)
			}
			section = append(section, "b@c\r\nFrom: h@x\r\nDKIM-Signature: v=1; a=rsa-sha256; d=partner.example; s=s; h=from; b=; bh=\r\n"...)
			j := begun(t, policy, by, to...)
			if found := j.header(section); found.Fault != nil {
				costly++
				break
			}
			j.Finish([]verdict.Signature{{Domain: "partner.example"}})
			for i, class := range j.taken {
				if f := class.Decides(); f.Verdict.Action != verdict.Reject {
					t.Fatalf("%d addresses, recipient %d of %d: %s", n, i, classes, f.Verdict.Action)
				}
			}
			refused++
		}
		if refused == 0 || costly == 0 {
			t.Errorf("%d classes: no header was nearly too costly", classes)
		}
	}
}
