// Package proof proves that the senders of a message are not forged, for allow lists with
// proven_by: by SPF (RFC 7208) the reverse-path, by DKIM (RFC 6376) each sender whose domain
// is aligned with that of a valid signature. Both prove a domain, and not that the owner of
// an address wrote the message.
//
// SPF is asked at most once for a message, and only if a verdict depends on it. A DKIM
// signature is verified while the message passes: see [Proofs.Verify].
package proof

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/recent"
	"spamgate/internal/resolver"
)

// Config configures Proofs.
type Config struct {
	// Resolvers are asked in turn. If there are none, those in /etc/resolv.conf are.
	Resolvers []netip.AddrPort

	Log  *slog.Logger  // nil: slog.Default()
	Dial resolver.Dial // nil: as net.Dialer does
}

// Proofs proves the senders of messages. Its methods are safe for concurrent use.
type Proofs struct {
	resolver *resolver.Resolver
	log      *slog.Logger
	warned   sync.Once // that SPF needs the true client

	mu      sync.Mutex
	results *recent.Map[spfKey, *spfResult]
}

// New returns Proofs.
func New(c Config) *Proofs {
	p := &Proofs{resolver: resolver.New(c.Dial, "/etc/resolv.conf"), log: c.Log}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.Apply(c.Resolvers)
	return p
}

// Apply sets the resolvers from now on. What others have answered is forgotten.
func (p *Proofs) Apply(resolvers []netip.AddrPort) {
	p.resolver.Configure(resolvers)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results = recent.New[spfKey, *spfResult](maxResults)
}

// Message returns the proofs of a new message.
func (p *Proofs) Message() *Message { return &Message{proofs: p} }

// Message proves the senders of one message. Its methods are safe for concurrent use.
type Message struct {
	proofs *Proofs

	mu  sync.Mutex
	spf *spfResult // nil: not asked yet
}

// Prove says whether a sender of the message is proven in one of the ways. It implements
// judge.Prover. Each fact of m counts from when it is known on.
func (msg *Message) Prove(ctx context.Context, m *verdict.Message, stage verdict.Stage, a sender.Address, by verdict.Proofs) verdict.Proof {
	proof := verdict.Proof{By: by}
	var why []string
	add := func(state verdict.ProofState, text string) {
		proof.State = max(proof.State, state)
		why = append(why, text)
	}
	if by&verdict.DKIM != 0 { // first, because it asks nothing
		state, text, domains := dkimState(m, a)
		proof.Domains = domains
		add(state, "dkim: "+text)
	}
	if by&verdict.SPF != 0 && proof.State != verdict.Proven && !(m.EnvelopeOnly && by&verdict.DKIM != 0) {
		state, text := msg.spfState(ctx, m, stage, a)
		add(state, "spf: "+text)
	}
	if proof.State != verdict.ProofPending {
		proof.Domains = nil
	}
	proof.Why = strings.Join(why, "; ")
	return proof
}
