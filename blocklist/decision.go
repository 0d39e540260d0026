package blocklist

import "spamgate/blocklist/verdict"

// weigh decides between the lists' own matches, which are in the order of the
// configuration, and marks those that are shielded. Override is the index of the
// first match from an overriding list, or -1.
func weigh(matches []verdict.Match, override int) verdict.Verdict {
	d := verdict.Verdict{Matches: matches, ClearsMessage: override >= 0}
	shield := override // the strongest allow match
	for i := range matches {
		if override < 0 && matches[i].Allow && (shield < 0 || matches[i].Rank < matches[shield].Rank) {
			shield = i
		}
	}
	for i := range matches {
		m := &matches[i]
		if m.Allow {
			continue
		}
		m.Shielded = override >= 0 || shield >= 0 && matches[shield].Rank <= m.Rank
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

// monitorOnly returns what becomes of a verdict when every list only monitors.
func monitorOnly(would verdict.Verdict) verdict.Verdict {
	d := verdict.Verdict{Matches: would.Matches, ClearsMessage: would.ClearsMessage, Would: &would}
	if would.Action == verdict.Accept {
		d.Match = would.Match
	}
	for _, m := range would.Matches {
		if !m.Allow {
			d.Monitored = append(d.Monitored, m)
		}
	}
	return d
}
