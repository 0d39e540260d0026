package world

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// proofs answers for the proofs of one message at a time, in place of DNS and cryptography.
type proofs struct {
	mu   sync.Mutex
	m    *message
	text []byte // of the message, as the client sends it

	faults []string
}

func (p *proofs) about(m *message, text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m, p.text = m, text
}

// fault notes what the gate did wrong.
func (p *proofs) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

var states = [...]verdict.ProofState{fails: verdict.NotProven, holds: verdict.Proven, unanswered: verdict.ProofUnknown}

// Prove implements judge.Prover.
func (p *proofs) Prove(_ context.Context, m *verdict.Message, stage verdict.Stage, a sender.Address, by verdict.Proofs) verdict.Proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	proof := verdict.Proof{By: by}
	reversePath, err := sender.Parse(m.ReversePath)
	if by&verdict.SPF != 0 && stage == verdict.Envelope && p.m.trueClient && err == nil && a.String() == reversePath.String() {
		proof.State = max(proof.State, states[p.m.spf])
	}
	if by&verdict.DKIM == 0 || a.IsNull() {
		return proof
	}
	if !m.HeaderKnown {
		proof.State = max(proof.State, verdict.ProofPending)
		return proof
	}
	if m.FromFields != 1 {
		return proof
	}
	for _, s := range m.Signatures {
		if !sender.Aligned(s.Domain, a.Domain()) {
			continue
		}
		proof.State = max(proof.State, s.State)
		if s.State == verdict.ProofPending {
			proof.Domains = append(proof.Domains, s.Domain)
		}
	}
	return proof
}

// Verify implements smtpfilter.SignatureVerifier.
func (p *proofs) Verify(_ context.Context, domains []string) smtpfilter.Verification {
	return &verification{proofs: p, domains: domains}
}

// verification verifies the signatures of one message.
type verification struct {
	proofs  *proofs
	domains []string
	read    bytes.Buffer
	over    bool
}

func (v *verification) Write(b []byte) (int, error) { return v.read.Write(b) }

func (v *verification) Finish() (result []verdict.Signature) {
	v.proofs.mu.Lock()
	m, text := v.proofs.m, v.proofs.text
	v.proofs.mu.Unlock()
	if v.over {
		v.proofs.fault("a verification was ended twice")
	}
	v.over = true
	if !bytes.Equal(v.read.Bytes(), text) {
		v.proofs.fault("the verifier read %q, and the message is %q", v.read.Bytes(), text)
	}
	for _, s := range m.signatures[:min(verdict.MaxSignatures, len(m.signatures))] {
		known := verdict.Signature{Domain: s.domain}
		if slices.Contains(v.domains, s.domain) {
			known.State = states[s.fact]
		}
		result = append(result, known)
	}
	return result
}

func (v *verification) Abort() { v.over = true }
