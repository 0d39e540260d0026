package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/term"
)

// notJudged returns the error if an address could not be judged, or nil.
func (k *session) notJudged(address string, envelope, header verdict.Finding) error {
	switch err := envelope.Err; {
	case envelope.NoAnswer() || header.Err != nil: // header senders are asked about once they are addresses
		return fmt.Errorf("%s: %w", address, errors.Join(err, header.Err))
	case err != nil:
		return fmt.Errorf("%q is not an address: %w%s%s", address, err, SuggestAddress(address), suggestForm(address))
	}
	return nil
}

// printReply prints the reply that a client gets when a listener refuses the sender.
func (k *session) printReply(f verdict.Finding) {
	if k.byDoors {
		return // each answers in its own words, see printDoors
	}
	if reply := k.policy.Refusal(&f, "ID"); !reply.IsZero() {
		fmt.Fprintf(k.out, "  %-9s the client hears: %s\n", "", reply)
	}
}

func sameVerdict(a, b verdict.Verdict) bool {
	return a.Action == b.Action && a.Match == b.Match && a.Pending == b.Pending && len(a.Proofs) == len(b.Proofs)
}

// explain prints a finding for people, for the recipients of a group. For an address (where is
// not "") it has the reply.
func (k *session) explain(where string, f verdict.Finding, stage verdict.Stage, g *group) {
	v := f.Verdict
	if v.Match.IsZero() && len(v.Monitored) == 0 && v.Proofs == nil {
		if slices.ContainsFunc(v.Matches, func(m verdict.Match) bool { return m.Allow && m.Sender != "" }) {
			term.PrintWrapped(k.out, fmt.Sprintf("  %-9s ", where), v.Action.String()+": "+why(v))
			return
		}
		k.unmatched(where, f.Address, stage)
		return
	}
	if !v.Match.IsZero() || v.Proofs != nil {
		k.explainMatch(where, v, g.class.Exempt)
	}
	for _, m := range v.Monitored {
		phrase := ""
		if m.Action != verdict.Accept {
			phrase = ", would " + m.Action.String()
		}
		fmt.Fprintf(k.out, "  %-9s only logged%s by list %s: %s%s\n", where, phrase, m.List, m.Entry, term.InBrackets(m.Reason))
		k.explainSource(m)
	}
	for _, p := range v.Proofs {
		term.PrintWrapped(k.out, "            ", "proof by "+proofText(p))
	}
	reply := func() {
		if where != "" && !g.class.Exempt {
			k.printReply(f)
		}
	}
	switch lists := unproven(v); {
	case v.Proved != nil:
		reply()
		k.explainMatch("if proven", *v.Proved, g.class.Exempt)
		return
	case v.Proofs != nil && lists != nil:
		fmt.Fprintf(k.out, "  %-9s %s allows only a proven sender, and does not count\n", "", strings.Join(lists, ", "))
	}
	reply()
}

// explainMatch prints the entry that decides. Recipients who are exempt get the mail all the same.
func (k *session) explainMatch(where string, v verdict.Verdict, exempt bool) {
	m, action := v.Match, v.Action.String()
	if exempt && v.Action > verdict.Tag {
		action = "would " + action
	}
	if m.IsZero() {
		fmt.Fprintf(k.out, "  %-9s %s\n", where, action)
		return
	}
	fmt.Fprintf(k.out, "  %-9s %s by list %s: %s%s\n", where, action, m.List, m.Entry, term.InBrackets(m.Reason))
	k.explainSource(m)
	if m.Note != "" && m.Line > 0 { // else it is what a list in DNS has answered, see printDNSAnswer
		fmt.Fprintf(k.out, "  %-9s private note: %s\n", "", m.Note)
	}
}

// explainSource prints where an entry is, and whom it is for if that is not the address alone.
func (k *session) explainSource(m verdict.Match) {
	fmt.Fprintf(k.out, "  %-9s %s\n", "", source(m))
	if m.For != "" {
		fmt.Fprintf(k.out, "  %-9s an entry for mail to %s\n", "", m.For)
	}
	if m.Sender != "" {
		term.PrintWrapped(k.out, "            ", "the sender within the address is "+m.Sender)
	}
}

// unmatched prints why no list matches: some may have an exception for the sender.
func (k *session) unmatched(where, address string, stage verdict.Stage) {
	var exceptions []verdict.Match
	if k.config.Filter.Confirm {
		if t, err := k.judge.Trace(context.Background(), nil, verdict.Query{Stage: stage, Address: address}); err == nil {
			for _, trace := range t {
				exceptions = append(exceptions, cancelling(trace)...)
			}
		}
	}
	if len(exceptions) == 0 {
		fmt.Fprintf(k.out, "  %-9s no list matches\n", where)
	}
	for _, m := range exceptions {
		fmt.Fprintf(k.out, "  %-9s let pass by an exception of list %s: !%s%s\n", where, m.List, strings.TrimPrefix(m.Entry, "!"), term.InBrackets(m.Reason))
		fmt.Fprintf(k.out, "  %-9s %s:%d\n", "", term.ShortPath(m.File), m.Line)
		where = ""
	}
}

// cancelling returns the exceptions without which an entry of their list would match.
func cancelling(t blocklist.Trace) []verdict.Match {
	var all, needed []verdict.Match
	for _, key := range t.Keys {
		for _, e := range key.Held {
			if e.Effect == blocklist.IsException {
				all = append(all, e.Match)
			}
			i := slices.IndexFunc(all, func(m verdict.Match) bool { return m.List == e.Match.List })
			if i >= 0 && !e.Exception && e.Effect == blocklist.LessThan && !slices.Contains(needed, all[i]) {
				needed = append(needed, all[i])
			}
		}
		// Where every list is settled nothing is looked up any more, and the
		// filter alone tells.
		if key.Skipped == blocklist.AllSettled && key.Maybe {
			return all
		}
	}
	return needed
}

// source returns the place of an entry. Without confirmation it is not known.
func source(m verdict.Match) string {
	if m.Unconfirmed {
		return "the filter alone decided (confirm = false)"
	}
	m.File = term.ShortPath(m.File)
	return m.Source()
}
