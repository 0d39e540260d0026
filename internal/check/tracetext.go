package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/bloom"
	"spamgate/blocklist/verdict"
	"spamgate/internal/report"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// printTrace prints a trace for people.
func (k *session) printTrace(t tracedAddress, stats blocklist.SetStats) {
	fmt.Fprintf(k.out, "%s: %s\n", t.Address, t.Action)
	entries := text.Count(stats.Entries, "entry", "entries")
	switch {
	case k.engine.options.Served == nil:
		fmt.Fprintf(k.out, "  lists     generation %d, %s\n", t.Generation, entries)
	default:
		fmt.Fprintf(k.out, "  lists     as they are on disk, %s\n", entries)
		if t.Generation > 0 {
			fmt.Fprintf(k.out, "            the running gate serves generation %d\n", t.Generation)
		}
	}
	fmt.Fprintf(k.out, "  filter    %s\n", report.DescribeFilter(stats))
	fmt.Fprintf(k.out, "            %s\n", report.DescribeRate(stats))
	for i, s := range t.Stages {
		where := strings.ReplaceAll(s.Stage, ",", " and ")
		if s.For != nil {
			where += " of mail to " + strings.Join(s.For.Recipients, ", ")
		}
		term.PrintWrapped(k.out, where+": ", s.Action.String())
		k.printKeys(s.Keys, s.Asked, i == 0)
		for _, w := range s.Wrapped {
			fmt.Fprintf(k.out, "  unwraps   %s: the sender within is %s\n", w.Scheme, w.Address)
			k.printKeys(w.Keys, w.Asked, i == 0)
		}
		k.printProofs(s.Proofs, s.Matches)
		term.PrintWrapped(k.out, "  why       ", s.Why)
		for _, m := range s.Matches {
			term.PrintWrapped(k.out, "  list "+m.List+": ", m.Role)
			fmt.Fprintf(k.out, "            %s%s, %s%s\n", m.Entry, forWhom(m.Match), source(m.Match), term.InBrackets(m.Reason))
		}
		k.printSay(s.For)
	}
}

// printKeys prints the keys of one sender, all of them or those that lists hold, and what
// lists in DNS say.
func (k *session) printKeys(keys []blocklist.TracedKey, asked []blocklist.Question, all bool) {
	for i, key := range keys {
		if all {
			k.printKey(i+1, key)
		} else if len(key.Held) > 0 { // the filter is the same
			fmt.Fprintf(k.out, "  %2d  %s  (%s)\n", i+1, keyText(key), key.Kind)
			k.printHeld(key.Held)
		}
	}
	for _, q := range asked {
		k.printDNSAnswer(newDNSAnswer(q.List, q.Domain, k.zoneOf(q.List), q.Answer))
	}
}

// printSay prints what the recipients have a say in.
func (k *session) printSay(r *tracedRecipients) {
	switch {
	case r == nil:
	case r.Policy != "":
		term.PrintWrapped(k.out, "  recipient ", "policy "+r.Policy+": "+r.PolicySays+"; the action is "+r.Action.String())
	case r.Exempt:
		term.PrintWrapped(k.out, "  recipient ", "reachable by every sender; the action is "+r.Action.String())
	default:
		term.PrintWrapped(k.out, "  recipient ", "no policy is for this one")
	}
}

// keyText returns a key, with the recipient's if it is one for a recipient.
func keyText(key blocklist.TracedKey) string {
	if key.For != "" {
		return "for " + key.For + ": " + key.Key
	}
	return key.Key
}

// forWhom names the recipient and the sender within that an entry is for.
func forWhom(m verdict.Match) string {
	text := ""
	if m.For != "" {
		text = " for " + m.For
	}
	if m.Sender != "" {
		text += ", for " + m.Sender
	}
	return text
}

// printProofs prints whether the sender is proven, if an allow entry asks for it.
func (k *session) printProofs(proofs []verdict.Proof, matches []tracedMatch) {
	for _, p := range proofs {
		term.PrintWrapped(k.out, "  proof     ", proofText(p))
	}
	asks := func(m tracedMatch) bool { return m.ProvenBy != 0 }
	if proofs == nil && slices.ContainsFunc(matches, asks) {
		fmt.Fprintln(k.out, "  proof     not asked: the decision is the same with and without it")
	}
}

// proofText returns a proof in words.
func proofText(p verdict.Proof) string {
	return orWords(p.By) + ": " + p.State.String() + term.InBrackets(p.Why)
}

func (k *session) printKey(n int, key blocklist.TracedKey) {
	fmt.Fprintf(k.out, "  %2d  %s  (%s)\n", n, keyText(key), key.Kind)
	switch key.Skipped {
	case blocklist.NoSuchKind:
		fmt.Fprintln(k.out, "      not asked: no list has an entry of this kind")
		return
	case blocklist.AllSettled:
		fmt.Fprintln(k.out, "      not asked: each list has answered already")
		return
	}
	for _, f := range key.Filters {
		k.printExplanation(f)
	}
	k.printHeld(key.Held)
	if key.FalsePositive {
		fmt.Fprintln(k.out, "      denied by the index: a false positive of the filter")
	}
}

func (k *session) printExplanation(f blocklist.TracedFilter) {
	var parts []string
	if f.List != "" {
		parts = append(parts, "list "+f.List)
	}
	if f.Parts > 1 {
		parts = append(parts, fmt.Sprintf("part %d of %d", f.Part+1, f.Parts))
	}
	if len(parts) > 0 {
		fmt.Fprintf(k.out, "      %s\n", strings.Join(parts, ", "))
	}
	k.printProbes(f.Probes)
	for _, p := range f.Places {
		fmt.Fprintf(k.out, "      place %10d  fingerprint %#x\n", p.Index, p.Value)
	}
	fmt.Fprintf(k.out, "      %s\n", answer(f.Explanation))
}

// printProbes prints a Bloom filter's bits, two in a line: the name of the hash,
// its value, unless the family makes the bit's position of it at once, and the
// position with the bit.
func (k *session) printProbes(probes []bloom.Probe) {
	values := slices.ContainsFunc(probes, func(p bloom.Probe) bool { return p.Value != p.Index })
	for pair := range slices.Chunk(probes, 2) {
		var texts []string
		for _, p := range pair {
			bit := 0
			if p.Set {
				bit = 1
			}
			value := ""
			if values {
				value = fmt.Sprintf("%08x ", p.Value)
			}
			texts = append(texts, fmt.Sprintf("%-7s %sbit %10d: %d", p.Hash, value, p.Index, bit))
		}
		fmt.Fprintf(k.out, "      %s\n", strings.Join(texts, "   "))
	}
}

// answer returns the filter's answer in words.
func answer(e bloom.Explanation) string {
	if len(e.Places) > 0 {
		found := uint64(0)
		for _, p := range e.Places {
			found ^= p.Value
		}
		if e.Maybe {
			return fmt.Sprintf("together %#x, which is the key's: maybe", found)
		}
		return fmt.Sprintf("together %#x, and the key's is %#x: certainly not listed", found, e.Fingerprint)
	}
	clear := 0
	for _, p := range e.Probes {
		if !p.Set {
			clear++
		}
	}
	switch {
	case clear > 0:
		return fmt.Sprintf("%s of %d clear: certainly not listed", text.Count(clear, "bit", "bits"), len(e.Probes))
	case !e.Maybe:
		return "the filter is empty: certainly not listed"
	}
	return "all bits are set: maybe"
}

func (k *session) printHeld(held []blocklist.TracedEntry) {
	for _, e := range held {
		entry := e.Entry
		if e.Exception {
			entry = "!" + entry
		}
		fmt.Fprintf(k.out, "      held by list %s: %s%s%s\n", e.List, entry, forWhom(e.Match), term.InBrackets(e.Reason))
		fmt.Fprintf(k.out, "        %s; %s\n", source(e.Match), describeEffect(e))
		if e.Note != "" {
			fmt.Fprintf(k.out, "        private note: %s\n", e.Note)
		}
	}
}

func describeEffect(e blocklist.TracedEntry) string {
	until := ""
	if !e.Until.IsZero() {
		until = ", until " + e.Until.Local().Format(time.RFC3339)
	}
	switch e.Effect {
	case blocklist.IsMatch:
		what := "allow"
		switch {
		case e.Match.Action != verdict.Accept:
			what = e.Match.Action.String()
		case e.ProvenBy != 0:
			what = "allow a sender that is proven by " + orWords(e.ProvenBy)
		}
		return "the list's match: " + what + until
	case blocklist.IsException:
		return "an exception: the list has no match" + until
	case blocklist.IsExpired:
		return "does not count: its time is over" + until
	case blocklist.NotCounted:
		return "does not count: the list is not asked here"
	default:
		return "does not count: the list has a more specific entry"
	}
}
