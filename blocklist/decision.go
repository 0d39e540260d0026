package blocklist

import "spamgate/blocklist/verdict"

// A Verdict has 256 bytes, and senders are judged deep in the stack of a connection. So these
// functions fill in one of the caller.

// weighAll decides about a sender, and those that forwarders wrapped into it.
//
// An allow match of the address itself shields the wrapped senders too, since forging it is
// no harder. That of a wrapped sender, which only the forwarder could verify, cancels that
// sender's block matches and nothing else.
func weighAll(d *verdict.Verdict, found []Found) {
	weigh(d, found[0].matches, found[0].overrides)
	allowed := allows(d.Matches)
	for i := 1; i < len(found); i++ {
		weighWrapped(d, &found[i], allowed)
	}
}

// weighWrapped adds to a verdict what the lists hold for a sender that a forwarder wrapped.
func weighWrapped(d *verdict.Verdict, f *Found, allowed bool) {
	var inner verdict.Verdict
	weigh(&inner, f.matches, f.overrides)
	if allowed {
		shield(&inner)
	}
	d.Matches = append(d.Matches, inner.Matches...)
	d.Monitored = append(d.Monitored, inner.Monitored...)
	d.Shielded = d.Shielded || inner.Shielded
	if inner.Action > d.Action {
		d.Action = inner.Action
		d.Match = inner.Match
	}
}

// allows reports whether an allow match is among the matches that counts.
func allows(matches []verdict.Match) bool {
	for i := range matches {
		if matches[i].Allow && !matches[i].Unproven {
			return true
		}
	}
	return false
}

// shield cancels all block matches of a verdict.
func shield(d *verdict.Verdict) {
	d.Shielded = d.Shielded || d.Action != verdict.Accept
	d.Action = verdict.Accept
	d.Match = verdict.Match{}
	for _, matches := range [][]verdict.Match{d.Matches, d.Monitored} {
		for i := range matches {
			matches[i].Shielded = !matches[i].Allow
		}
	}
}

// weigh decides between the lists' own matches, which are in the order of the configuration,
// and marks those that are shielded. Overrides are the indexes of matches from overriding
// lists.
func weigh(d *verdict.Verdict, matches []verdict.Match, overrides []int) {
	*d = verdict.Verdict{}
	d.Matches = matches
	shield := -1 // the strongest allow match
	for _, i := range overrides {
		if !matches[i].Unproven {
			shield, d.ClearsMessage = i, true
			break
		}
	}
	for i := range matches {
		m := &matches[i]
		if !d.ClearsMessage && m.Allow && !m.Unproven && (shield < 0 || m.Rank < matches[shield].Rank) {
			shield = i
		}
	}
	for i := range matches {
		m := &matches[i]
		if m.Allow {
			continue
		}
		m.Shielded = d.ClearsMessage || shield >= 0 && matches[shield].Rank <= m.Rank
		switch {
		case m.Monitor:
			d.Monitored = append(d.Monitored, *m)
		case m.Shielded:
			d.Shielded = true
		case m.Action > d.Action:
			d.Action = m.Action
			d.Match = *m
		}
	}
	if d.Action == verdict.Accept && shield >= 0 {
		d.Match = matches[shield]
	}
}

// monitored returns what becomes of a verdict if every list only monitors.
func monitored(d *verdict.Verdict) {
	pending, ifProved, proofs := d.Pending, d.Proved, d.Proofs
	*d = d.Monitor()
	if ifProved != nil {
		proved := ifProved.Monitor()
		d.Pending, d.Proved, d.Proofs = pending, &proved, proofs
	}
}
