package blocklist

import "spamgate/blocklist/verdict"

// weighAll decides about a sender, and those that forwarders wrapped into it.
//
// An allow match of the address itself shields the wrapped senders too, since forging it is
// no harder. That of a wrapped sender, which only the forwarder could verify, cancels that
// sender's block matches and nothing else.
func weighAll(found []Found) verdict.Verdict {
	d := weigh(found[0].matches, found[0].overrides)
	allowed := allows(d.Matches)
	for _, f := range found[min(1, len(found)):] {
		inner := weigh(f.matches, f.overrides)
		if allowed {
			inner = shield(inner)
		}
		d.Matches = append(d.Matches, inner.Matches...)
		d.Monitored = append(d.Monitored, inner.Monitored...)
		d.Shielded = d.Shielded || inner.Shielded
		if inner.Action > d.Action {
			d.Action, d.Match = inner.Action, inner.Match
		}
	}
	return d
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
func shield(d verdict.Verdict) verdict.Verdict {
	d.Shielded = d.Shielded || d.Action != verdict.Accept
	d.Action, d.Match = verdict.Accept, verdict.Match{}
	for _, matches := range [][]verdict.Match{d.Matches, d.Monitored} {
		for i := range matches {
			matches[i].Shielded = !matches[i].Allow
		}
	}
	return d
}

// weigh decides between the lists' own matches, which are in the order of the configuration,
// and marks those that are shielded. Overrides are the indexes of matches from overriding
// lists.
func weigh(matches []verdict.Match, overrides []int) verdict.Verdict {
	d := verdict.Verdict{Matches: matches}
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
			d.Action, d.Match = m.Action, *m
		}
	}
	if d.Action == verdict.Accept && shield >= 0 {
		d.Match = matches[shield]
	}
	return d
}

// monitored returns what becomes of a verdict if every list only monitors.
func monitored(would verdict.Verdict) verdict.Verdict {
	d := would.Monitor()
	if would.Proved != nil {
		proved := would.Proved.Monitor()
		d.Pending, d.Proved = would.Pending, &proved
	}
	return d
}
