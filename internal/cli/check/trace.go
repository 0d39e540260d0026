package check

import (
	"context"
	"fmt"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/config"
)

// tracedAddress is the output of check --trace for an address.
type tracedAddress struct {
	Address    string        `json:"address"`
	Action     string        `json:"action"`               // the stricter of envelope and header
	Generation uint64        `json:"generation,omitempty"` // of the running gate; the lists are those on disk
	Filter     tracedFilter  `json:"filter"`
	Stages     []tracedStage `json:"stages"` // one where both are alike
}

type tracedFilter struct {
	Kind      blocklist.Kind `json:"kind"`
	Family    string         `json:"family,omitempty"`
	Bits      uint64         `json:"bits"`
	Hashes    int            `json:"hashes"`
	Bytes     uint64         `json:"bytes"`
	FillRatio float64        `json:"fill_ratio"`
	FPR       admin.Rate     `json:"fpr"`
}

// tracedStage is the decision about a sender in the envelope or in the header.
type tracedStage struct {
	Stage   string                `json:"stage"` // "envelope", "header" or both with a comma between
	Keys    []blocklist.TracedKey `json:"keys"`
	Asked   []blocklist.Question  `json:"asked,omitempty"` // lists in DNS
	Action  verdict.Action        `json:"action"`
	Match   *verdict.Match        `json:"match,omitempty"`
	Matches []tracedMatch         `json:"matches,omitempty"` // each list's own, in the order of the configuration
	Why     string                `json:"why"`
}

// tracedMatch is a list's match, and what became of it.
type tracedMatch struct {
	verdict.Match
	Role string `json:"role"`
}

// servedGeneration returns the generation of the running gate's lists, or 0 if none answers.
func servedGeneration(ctx context.Context, c *config.Config) uint64 {
	gate := cli.DialGate(c)
	defer gate.Close()
	if gate.Client == nil {
		return 0
	}
	generation, err := gate.Client.Generation(ctx)
	if err != nil {
		return 0
	}
	return generation
}

// trace explains the whole decision about one address.
func (k *session) trace(address string) error {
	r, envelope, header := k.result(address)
	if err := k.notJudged(address, envelope, header); err != nil {
		return err
	}
	k.note(envelope.Verdict.Action, header.Verdict.Action)
	stats := k.judge.View().Set().Stats()
	t := tracedAddress{
		Address: address, Action: r.Action, Generation: k.generation,
		Filter: tracedFilter{
			Kind: stats.Kind, Family: stats.Family, Bits: stats.Bits, Hashes: stats.Hashes,
			Bytes: stats.FilterBytes, FillRatio: stats.FillRatio, FPR: admin.Rate(stats.FPR),
		},
	}
	null := false
	for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
		if null || k.alike && stage == verdict.Header {
			break
		}
		trace, err := k.traceStage(stage, address)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		t.Stages = append(t.Stages, newTracedStage(trace))
		null = trace.Address == "<>"
	}
	if k.alike && !null {
		t.Stages[0].Stage = "envelope,header"
	}
	if k.options.json {
		return k.json.Encode(t)
	}
	k.printTrace(t, stats)
	k.printReply(envelope)
	if !sameVerdict(envelope.Verdict, header.Verdict) {
		k.printReply(header)
	}
	return nil
}

func newTracedStage(trace blocklist.Trace) tracedStage {
	d := trace.Verdict
	s := tracedStage{Stage: trace.Stage.String(), Keys: trace.Keys, Asked: trace.Asked, Action: d.Action, Why: why(d)}
	if !d.Match.IsZero() {
		s.Match = &d.Match
	}
	weighed := d
	if d.Would != nil {
		weighed = *d.Would
	}
	for i := range weighed.Matches {
		s.Matches = append(s.Matches, tracedMatch{weighed.Matches[i], role(weighed, i)})
	}
	return s
}

// why explains a decision in one sentence.
func why(d verdict.Verdict) string {
	if d.Would != nil {
		return fmt.Sprintf(`mode = "monitor" in [policy]: it would be %s, and is only logged`, d.Would.Action)
	}
	switch m := d.Match; {
	case d.Matches == nil:
		return "no list has an entry that counts"
	case m.IsZero():
		return "what matches is only logged"
	case m.Allow && d.ClearsMessage:
		return fmt.Sprintf("list %s overrides every block list", m.List)
	case m.Allow && d.Shielded:
		return fmt.Sprintf("list %s shields the sender from entries that are no more specific", m.List)
	case m.Allow:
		return fmt.Sprintf("list %s allows the sender, and no block list has an entry that stands", m.List)
	}
	return fmt.Sprintf("%s is the strictest action of the block lists whose entries stand", d.Action)
}

// role describes the effect of a list's match.
func role(d verdict.Verdict, i int) string {
	m := d.Matches[i]
	shield := strongest(d)
	switch {
	case m.Allow && i == shield && d.ClearsMessage:
		return "overrides every block list"
	case m.Allow && i == shield:
		return "allows; shields from block entries that are no more specific"
	case m.Allow:
		return fmt.Sprintf("allows, as list %s does more strongly", d.Matches[shield].List)
	case m.Shielded && m.Monitor:
		return fmt.Sprintf("%s, but shielded by list %s", verdict.Monitor, d.Matches[shield].List)
	case m.Shielded:
		return fmt.Sprintf("%s, but shielded by list %s", m.Action, d.Matches[shield].List)
	case m.Monitor:
		return "only logged"
	case m == d.Match:
		return m.Action.String() + ", which decides"
	case m.Action < d.Action:
		return fmt.Sprintf("%s, which is milder", m.Action)
	}
	return fmt.Sprintf("%s, as list %s before it", m.Action, d.Match.List)
}

// strongest returns the index of the allow list's match that shields, or -1. A verdict does
// not say which list overrides; if an allow list decides, its match is the verdict's.
func strongest(d verdict.Verdict) int {
	best := -1
	for i, m := range d.Matches {
		switch {
		case !m.Allow:
		case m == d.Match:
			return i
		case best < 0 || m.Rank < d.Matches[best].Rank:
			best = i
		}
	}
	return best
}
