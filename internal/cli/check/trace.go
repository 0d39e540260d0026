package check

import (
	"context"
	"fmt"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/smtpfilter"
)

// tracedAddress is what check --trace says of an address.
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
	FPR       float64        `json:"fpr"`
}

// tracedStage is the decision about a sender in the envelope or in the header.
type tracedStage struct {
	Stage   string            `json:"stage"` // "envelope", "header" or both with a comma between
	Keys    []tracedKey       `json:"keys"`
	Action  smtpfilter.Action `json:"action"`
	Match   *smtpfilter.Match `json:"match,omitempty"`
	Matches []tracedMatch     `json:"matches,omitempty"` // each list's own, in the order of the configuration
	Why     string            `json:"why"`
}

type tracedKey struct {
	blocklist.TracedKey
	Held []tracedEntry `json:"held,omitempty"`
}

// tracedEntry is an entry that a list holds under a key.
type tracedEntry struct {
	smtpfilter.Match
	Exception bool             `json:"exception,omitempty"`
	Until     time.Time        `json:"until,omitzero"`
	Effect    blocklist.Effect `json:"effect"`
}

// tracedMatch is a list's match, and what became of it.
type tracedMatch struct {
	smtpfilter.Match
	Role string `json:"role"`
}

// servedGeneration is that of the running gate's lists; 0 where none answers.
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
func (k *checking) trace(address string) error {
	r, envelope, header := k.result(address)
	if err := k.judged(address, envelope, header); err != nil {
		return err
	}
	a, err := sender.Parse(address)
	if err != nil {
		return err // it was an address to result
	}
	stats := k.judge.Lists.Set().Stats()
	t := tracedAddress{
		Address: address, Action: r.Action, Generation: k.generation,
		Filter: tracedFilter{
			Kind: stats.Kind, Family: stats.Family, Bits: stats.Bits, Hashes: stats.Hashes,
			Bytes: stats.FilterBytes, FillRatio: stats.FillRatio, FPR: stats.FPR,
		},
	}
	stages := []blocklist.Stage{blocklist.Envelope, blocklist.Header}
	if k.alike || a.IsNull() {
		stages = stages[:1]
	}
	for _, stage := range stages {
		trace, err := k.judge.Lists.Trace(stage, a)
		if err != nil {
			return fmt.Errorf("check: %s: %w", address, err)
		}
		t.Stages = append(t.Stages, newTracedStage(trace))
	}
	if k.alike && !a.IsNull() {
		t.Stages[0].Stage = "envelope,header"
	}
	if k.options.json {
		return k.json.Encode(t)
	}
	k.printTrace(t, stats)
	k.hears(envelope)
	if !sameVerdict(envelope.Verdict, header.Verdict) {
		k.hears(header)
	}
	return nil
}

func newTracedStage(trace blocklist.Trace) tracedStage {
	d := trace.Decision
	s := tracedStage{Stage: trace.Stage.String(), Action: setup.Action(d.Action), Why: why(d)}
	if !d.Match.IsZero() {
		m := setup.Match(d.Match)
		s.Match = &m
	}
	for _, key := range trace.Keys {
		t := tracedKey{TracedKey: key}
		for _, e := range key.Held {
			t.Held = append(t.Held, tracedEntry{setup.Match(e.Match), e.Exception, e.Until, e.Effect})
		}
		s.Keys = append(s.Keys, t)
	}
	weighed := d
	if d.Would != nil {
		weighed = *d.Would
	}
	for i := range weighed.Matches {
		s.Matches = append(s.Matches, tracedMatch{setup.Match(weighed.Matches[i]), role(weighed, i)})
	}
	return s
}

// why says in a sentence what a decision rests on.
func why(d blocklist.Decision) string {
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

// role says what became of a list's match.
func role(d blocklist.Decision, i int) string {
	m := d.Matches[i]
	shield := strongest(d)
	switch {
	case m.Allow && i == shield && d.ClearsMessage:
		return "overrides every block list"
	case m.Allow && i == shield:
		return "allows; shields from block entries that are no more specific"
	case m.Allow:
		return fmt.Sprintf("allows, as list %s does more strongly", d.Matches[shield].List)
	case m.Shielded:
		return fmt.Sprintf("%s, but shielded by list %s", m.Action, d.Matches[shield].List)
	case m.Action == blocklist.Monitor:
		return "only logged"
	case m == d.Match:
		return m.Action.String() + ", which decides"
	case m.Action < d.Action:
		return fmt.Sprintf("%s, which is milder", m.Action)
	}
	return fmt.Sprintf("%s, as list %s before it", m.Action, d.Match.List)
}

// strongest is the place of the allow list's match that shields, -1 without one.
// A decision does not say which list overrides; the strongest is the decision's
// match, wherever an allow list has the last word.
func strongest(d blocklist.Decision) int {
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
