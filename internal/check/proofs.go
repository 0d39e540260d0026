package check

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/proof"
	"spamgate/internal/term"
	"spamgate/smtpfilter/header"
)

// prover proves the senders of one message, except by what check does not know.
type prover struct {
	*proof.Message
	unasked string // why SPF is not asked; "" if it is
}

// newProver returns the Prover for an address or a message, nil if no list asks for proofs.
func (k *session) newProver() judge.Prover {
	if k.judge.View().Proofs() == 0 || k.proofs == nil {
		return nil
	}
	p := prover{Message: k.proofs.Message()}
	switch {
	case k.asked.Offline:
		p.unasked = "not asked, because of " + k.argument("offline")
	case !k.asked.Client.IsValid():
		p.unasked = "not known without " + k.argument("client")
	}
	return p
}

// Prove implements judge.Prover. SPF is pending while it is not known.
func (p prover) Prove(ctx context.Context, m *verdict.Message, stage verdict.Stage, a sender.Address, by verdict.Proofs) verdict.Proof {
	path, err := sender.Parse(m.ReversePath)
	if p.unasked == "" || by&verdict.SPF == 0 || stage != verdict.Envelope || err != nil || path != a {
		return p.Message.Prove(ctx, m, stage, a, by)
	}
	known := verdict.Proof{}
	if by&verdict.DKIM != 0 {
		known = p.Message.Prove(ctx, m, stage, a, verdict.DKIM)
	}
	if known.By = by; known.State != verdict.Proven {
		known.State = verdict.ProofPending
		known.Why = strings.TrimPrefix(known.Why+"; spf: "+p.unasked, "; ")
	}
	return known
}

// facts returns what is known of a message with an envelope sender.
func (k *session) facts(from string) verdict.Message {
	return verdict.Message{ReversePath: from, Client: netip.AddrPortFrom(k.asked.Client, 0), Helo: k.asked.Helo}
}

// shownProofs are the proofs of a message for programs.
type shownProofs struct {
	SPF        string           `json:"spf"`
	Signatures []shownSignature `json:"signatures,omitempty"`
	FromFields int              `json:"from_fields"` // DKIM proves no sender if there is not one
}

type shownSignature struct {
	Domain  string   `json:"domain"`
	State   string   `json:"state"`
	Why     string   `json:"why,omitempty"`
	Aligned []string `json:"aligned,omitempty"` // the senders that it proves if it is valid
}

// showsProofs reports whether the proofs of a message are shown.
func (k *session) showsProofs() bool {
	return k.proofs != nil && (k.judge.View().Proofs() != 0 || k.asked.Client.IsValid())
}

// verify returns the signatures of a message, verified unless that is offline, and the number
// of its From fields. The body is what follows the empty line after the header section.
func (k *session) verify(ctx context.Context, section []byte, body io.Reader) (signatures []verdict.Signature, fromFields int, err error) {
	signatures, fromFields = header.Signatures(section)
	var domains []string
	for _, s := range signatures {
		if s.Domain != "" {
			domains = append(domains, s.Domain)
		}
	}
	if k.asked.Offline || len(domains) == 0 {
		return signatures, fromFields, nil
	}
	v := k.proofs.Verify(ctx, domains)
	_, _ = v.Write(append(slices.Clone(section), "\r\n"...)) // never fails
	if _, err := io.Copy(v, body); err != nil {
		v.Abort()
		return nil, 0, fmt.Errorf("%s: %w", k.argument("message"), err)
	}
	return v.Finish(), fromFields, nil
}

// describeProofs returns what proves which senders of a message.
func (k *session) describeProofs(ctx context.Context, in messageIn, m *verdict.Message, senders []verdict.Finding) *shownProofs {
	r := &shownProofs{SPF: "not known without " + k.argument("client"), FromFields: in.fromFields}
	path, err := sender.Parse(in.from)
	switch {
	case k.asked.Offline:
		r.SPF = "not asked, because of " + k.argument("offline")
	case !in.judged || err != nil:
		r.SPF = "not known without " + k.argument("from")
	case k.asked.Client.IsValid():
		p := k.proofs.Message().Prove(ctx, m, verdict.Envelope, path, verdict.SPF)
		r.SPF = p.State.String() + ": " + strings.TrimPrefix(p.Why, "spf: ")
	}
	for _, s := range in.signatures {
		shown := shownSignature{Domain: s.Domain, State: s.State.String(), Why: s.Why}
		if s.State == verdict.ProofPending {
			shown.State, shown.Why = "not verified", "because of "+k.argument("offline")
		}
		for _, f := range senders {
			a, err := sender.Parse(f.Address)
			if who := f.Identity + " " + f.Address; err == nil && sender.Aligned(s.Domain, a.Domain()) && f.Form == "" {
				shown.Aligned = append(shown.Aligned, who)
			}
		}
		r.Signatures = append(r.Signatures, shown)
	}
	return r
}

// printMessageProofs prints what proves which senders of a message.
func (k *session) printMessageProofs(p *shownProofs) {
	if p == nil {
		return
	}
	term.PrintWrapped(k.out, "SPF: ", p.SPF)
	if len(p.Signatures) == 0 {
		fmt.Fprintln(k.out, "DKIM: the message has no signature")
	}
	for _, s := range p.Signatures {
		aligned := "; aligned with no sender"
		if len(s.Aligned) > 0 {
			aligned = "; aligned with " + strings.Join(s.Aligned, ", ")
		}
		term.PrintWrapped(k.out, "DKIM: signature of "+s.Domain+": ", s.State+term.InBrackets(s.Why)+aligned)
	}
	if p.FromFields != 1 && len(p.Signatures) > 0 {
		fmt.Fprintf(k.out, "DKIM: proves no sender, since the message has %d From fields\n", p.FromFields)
	}
}
