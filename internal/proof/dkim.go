package proof

import (
	"fmt"
	"slices"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// dkimState says whether a signature proves a sender, as far as the message is known, and in
// words why. While it is pending because of signatures, domains are theirs.
func dkimState(m *verdict.Message, a sender.Address) (state verdict.ProofState, why string, domains []string) {
	switch {
	case a.IsNull():
		return verdict.NotProven, "the null sender has no domain", nil
	case !m.HeaderKnown:
		return verdict.ProofPending, "the message is not read yet", nil
	case m.FromFields != 1: // whichever is signed, readers may show another one
		return verdict.NotProven, fmt.Sprintf("the message has %d From fields", m.FromFields), nil
	}
	why = "no signature of a domain aligned with " + a.Domain()
	for _, s := range m.Signatures {
		if s.Domain == "" || !sender.Aligned(s.Domain, a.Domain()) {
			continue
		}
		found := s.State
		if m.BodyKnown && found == verdict.ProofPending {
			found = verdict.NotProven // by a door that cannot verify it
		}
		if found == verdict.ProofPending && !slices.Contains(domains, s.Domain) {
			domains = append(domains, s.Domain)
		}
		if found >= state { // of those alike, the last one is the sender's own
			state, why = found, describe(s, found)
		}
	}
	return state, why, domains
}

// describe says what is known of an aligned signature.
func describe(s verdict.Signature, state verdict.ProofState) string {
	switch state {
	case verdict.Proven:
		return "a valid signature of " + s.Domain
	case verdict.ProofPending:
		return "a signature of " + s.Domain + " that is verified at the end of the message"
	case verdict.ProofUnknown:
		return fmt.Sprintf("the signature of %s cannot be verified now: %s", s.Domain, s.Why)
	}
	if s.Why == "" {
		return "the signature of " + s.Domain + " is not verified"
	}
	return fmt.Sprintf("the signature of %s is not valid: %s", s.Domain, s.Why)
}
