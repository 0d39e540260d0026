package world

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// judged judges each sender of a message in each phase, for one recipient.
func (w *configuration) judged(checker judge.Checker, m *message, rcpt string) string {
	j := checker.Judge().(verdict.RecipientJudge)
	keys, err := j.KeysOf(verdict.ParseRecipient(rcpt))
	check(err)
	r := w.recipient(rcpt)
	facts := verdict.Message{ReversePath: m.from.written}
	for current := atRcpt; current <= atBody; current++ {
		m.known(&facts, current)
		ask := func(a address, header bool) string {
			q := verdict.Query{Stage: verdict.Envelope, Address: a.written, For: verdict.For{Lists: r.rule.lists, Keys: keys}}
			if header {
				q.Stage = verdict.Header
			}
			got, err := j.Judge(context.Background(), &facts, q)
			check(err)
			today, proved := (&question{w, m, a, header, rcpt, r.rule}).answer(current)
			if w.monitor { // the rest is for the log
				if got.Action != verdict.Accept {
					return fmt.Sprintf("%s <%s> in phase %s: got %s although all lists monitor", q.Stage, a.written, current, got.Action)
				}
				return ""
			}
			if got, want := verdictText(got, header), answersText(today, proved); got != want {
				return fmt.Sprintf("%s <%s> in phase %s: got %s, want %s", q.Stage, a.written, current, got, want)
			}
			return ""
		}
		diff := ask(m.from, false)
		for _, f := range m.fields {
			for _, a := range f.addresses {
				if diff == "" && current != atRcpt {
					diff = ask(a, true)
				}
			}
		}
		if diff != "" {
			return diff
		}
	}
	return ""
}

// known sets what is known of a message.
func (m *message) known(facts *verdict.Message, current phase) {
	facts.HeaderKnown, facts.BodyKnown = current >= atHeader, current == atBody
	facts.FromFields, facts.Signatures = 0, nil
	if current == atRcpt {
		return
	}
	for _, f := range m.fields {
		if f.name == "From" {
			facts.FromFields++
		}
	}
	for _, s := range m.signatures[:min(verdict.MaxSignatures, len(m.signatures))] {
		state := verdict.ProofPending
		if current == atBody {
			state = states[s.fact]
		}
		facts.Signatures = append(facts.Signatures, verdict.Signature{Domain: s.domain, State: state})
	}
}

// verdictText writes what the model says, too, of a verdict.
func verdictText(v verdict.Verdict, header bool) string {
	text := func(v verdict.Verdict) string {
		a := ruling{clears: v.ClearsMessage && !header, mayClear: v.MayClear && !header} // which only the reverse-path can
		a.action = action(slices.Index(actionNames, v.Action.String()))
		if a.action != accept {
			a.list, a.sender = v.Match.List, v.Match.Sender
		}
		return a.String()
	}
	if v.Pending {
		return text(v) + ", proved " + text(*v.Proved)
	}
	return text(v)
}

func answersText(today, proved ruling) string {
	if today.consequence() != proved.consequence() {
		return today.String() + ", proved " + proved.String()
	}
	return today.String()
}

func (a ruling) String() string {
	words := []string{a.action.String(), a.list, a.sender}
	if a.clears {
		words = append(words, "clears")
	}
	if a.mayClear {
		words = append(words, "may clear")
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// checker returns what judges by the lists that are served.
func (g *mailGate) checker(w *configuration) judge.Checker {
	c := judge.Checker{Store: g, Prover: func() judge.Prover { return g.proofs }}
	if w.srs {
		c.Unwrap |= sender.SRS
	}
	if w.batv {
		c.Unwrap |= sender.BATV
	}
	return c
}
