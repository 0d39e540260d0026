package check

import (
	"context"
	"fmt"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
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
	Stage   string                `json:"stage"`         // "envelope", "header" or both with a comma between
	For     *tracedRecipients     `json:"for,omitempty"` // for whom it is, if recipients are given
	Keys    []blocklist.TracedKey `json:"keys"`
	Asked   []blocklist.Question  `json:"asked,omitempty"`   // lists in DNS
	Wrapped []tracedSender        `json:"wrapped,omitempty"` // senders within, the outermost first
	Proofs  []verdict.Proof       `json:"proofs,omitempty"`  // those on which the action depends
	Action  verdict.Action        `json:"action"`
	Proved  *verdict.Action       `json:"action_if_proven,omitempty"` // if a proof is pending
	Match   *verdict.Match        `json:"match,omitempty"`
	Matches []tracedMatch         `json:"matches,omitempty"` // each list's own, in the order of the configuration
	Why     string                `json:"why"`
}

// tracedRecipients are recipients for whom the same counts.
type tracedRecipients struct {
	Recipients []string       `json:"recipients"`
	Policy     string         `json:"policy,omitempty"`      // the [[recipient_policy]]
	PolicySays string         `json:"policy_says,omitempty"` // "at most tag"
	Action     verdict.Action `json:"action"`                // what becomes of the lists' action for them
	Exempt     bool           `json:"exempt,omitempty"`      // reachable by every sender
}

// tracedSender is a sender that a forwarder wrapped into the address.
type tracedSender struct {
	Address string                `json:"address"`
	Scheme  string                `json:"scheme"` // "srs0", see sender.Unwrap
	Keys    []blocklist.TracedKey `json:"keys"`
	Asked   []blocklist.Question  `json:"asked,omitempty"`
}

// tracedMatch is a list's match, and what became of it.
type tracedMatch struct {
	verdict.Match
	Role string `json:"role"`
}

// generation returns the generation of the lists that the running gate serves, 0 if none runs.
func (k *session) generation(ctx context.Context) uint64 {
	if served := k.engine.options.Served; served != nil {
		return served(ctx)
	}
	return k.judge.Generation()
}

// trace explains the whole decision about one address.
func (k *session) trace(ctx context.Context, address string) (*Answer, error) {
	groups, _ := k.judgeForEach(ctx, address)
	stats := k.judge.View().Set().Stats()
	t := tracedAddress{
		Address: address, Generation: k.generation(ctx),
		Filter: tracedFilter{
			Kind: stats.Kind, Family: stats.Family, Bits: stats.Bits, Hashes: stats.Hashes,
			Bytes: stats.FilterBytes, FillRatio: stats.FillRatio, FPR: admin.Rate(stats.FPR),
		},
	}
	worst := verdict.Accept
	for _, g := range groups {
		stages, decided, err := k.traceGroup(ctx, address, g)
		if err != nil {
			return nil, err
		}
		t.Stages = append(t.Stages, stages...)
		worst = max(worst, decided)
	}
	t.Action = worst.String()
	return k.answer(t, worst, worst, func() {
		k.printTrace(t, stats)
		for _, g := range groups {
			k.printReplies(g)
		}
	}), nil
}

// traceGroup traces the decision about an address for recipients. It returns the action, too.
func (k *session) traceGroup(ctx context.Context, address string, g *group) (stages []tracedStage, decided verdict.Action, err error) {
	envelope, header := g.class.Envelope, g.header[0]
	if err := k.notJudged(address, envelope, header); err != nil {
		return nil, 0, err
	}
	for i, f := range []verdict.Finding{envelope, header} {
		stage := []verdict.Stage{verdict.Envelope, verdict.Header}[i]
		if stage == verdict.Header && (k.alike || f.Address == "") {
			break
		}
		traces, err := k.traceStage(ctx, stage, address, g.class.For)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", address, err)
		}
		s := newTracedStage(traces)
		action := verdict.Decide([]verdict.Finding{f}, g.class.Exempt).Verdict.Action
		if g.recipients != nil {
			s.For = &tracedRecipients{Recipients: g.recipients, Action: action, Exempt: g.class.Exempt}
			if r := g.class.Rule; r != nil {
				s.For.Policy, s.For.PolicySays = r.Name, describeRule(r)
			}
		}
		stages = append(stages, s)
		decided = max(decided, action)
	}
	if k.alike && envelope.Address != "" {
		stages[0].Stage = "envelope,header"
	}
	return stages, decided, nil
}

// printReplies prints the replies that a client gets because of an address.
func (k *session) printReplies(g *group) {
	if g.class.Exempt {
		return
	}
	envelope, header := g.class.Envelope, g.header[0]
	k.printReply(envelope)
	if !sameVerdict(envelope.Verdict, header.Verdict) {
		k.printReply(header)
	}
}

func newTracedStage(traces []blocklist.Trace) tracedStage {
	first := traces[0]
	d := first.Verdict
	s := tracedStage{Stage: first.Stage.String(), Keys: first.Keys, Asked: first.Asked, Proofs: d.Proofs, Action: d.Action, Why: why(d)}
	for i, t := range traces[1:] {
		s.Wrapped = append(s.Wrapped, tracedSender{t.Address, traces[i].Wraps, t.Keys, t.Asked})
	}
	if d.Proved != nil {
		s.Proved = &d.Proved.Action
	}
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
