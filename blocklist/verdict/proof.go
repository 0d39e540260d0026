package verdict

import "fmt"

// Proofs are ways to prove that a sender is not forged. It is a bit set: any of them will
// do. The zero Proofs asks for none.
type Proofs uint8

// The proofs.
const (
	SPF  Proofs = 1 << iota // RFC 7208: the client may send for the domain of the reverse-path
	DKIM                    // RFC 6376: a domain that is aligned with the sender's has signed the message
)

var proofNames = []string{"spf", "dkim"}

// String returns the names with commas between: "spf,dkim".
func (p Proofs) String() string { return namesOf(proofNames, uint8(p)) }

// MarshalText returns what String returns.
func (p Proofs) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses what String returns: one name, or several with commas between.
func (p *Proofs) UnmarshalText(text []byte) error {
	return parseNames("proof", proofNames, string(text), (*uint8)(p))
}

// ProofState says whether a sender is proven.
type ProofState uint8

// The states, a stronger one after a weaker one.
const (
	NotProven    ProofState = iota // and it will not be
	ProofUnknown                   // a question has no answer now; a later attempt may have one
	ProofPending                   // what comes of the message may prove it
	Proven
)

var proofStateNames = []string{"not proven", "no answer", "pending", "proven"}

// String returns the state in words: "not proven".
func (s ProofState) String() string {
	if int(s) < len(proofStateNames) {
		return proofStateNames[s]
	}
	return fmt.Sprintf("ProofState(%d)", uint8(s))
}

// MarshalText returns what String returns.
func (s ProofState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Proof says whether one sender of a message is proven.
type Proof struct {
	By    Proofs     `json:"proven_by"` // the proofs of which any will do
	State ProofState `json:"state"`

	// Why is one part for each proof that was tried, with "; " between: "spf: pass for
	// 192.0.2.1". Domains in it may be those of a stranger.
	Why string `json:"why,omitempty"`

	// Domains are the signing domains of the signatures that a pending proof waits for,
	// once the header is known.
	Domains []string `json:"-"`
}

// Signature is a DKIM signature in a header.
type Signature struct {
	Domain string // d=, in normal form

	// State is ProofPending before it was verified, and NotProven if it is not valid.
	State ProofState
	Why   string // in words, if it is not valid: "body hash did not verify"
}

// MaxSignatures bounds the signatures of a message that are verified.
const MaxSignatures = 5
