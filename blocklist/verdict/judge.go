package verdict

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"spamgate/blocklist/sender"
)

// ErrNoAnswer says that the lists could not be asked about a sender. The fault
// is ours: the mail is neither let through nor refused for good, and the client
// should try again.
var ErrNoAnswer = errors.New("the lists cannot be asked now")

// Judge answers for one state of the lists. It is safe for concurrent use.
type Judge interface {
	// Judge returns the verdict on one sender of a message. An error that wraps
	// ErrNoAnswer says that the lists could not be asked. Any other error says
	// that the query's address is not an address.
	//
	// The Judge may neither change the message nor keep it.
	Judge(ctx context.Context, m *Message, q Query) (Verdict, error)

	// Generation numbers the state of the lists.
	Generation() uint64
}

// ProofJudge is a Judge that may ask for proofs. It needs to know what the header and the body
// say of them, see [Message].
type ProofJudge interface {
	Judge

	// Proofs returns the proofs on which verdicts may depend, 0 if none does.
	Proofs() Proofs
}

// Checker returns the Judge of the present lists. All senders of one message
// are judged by the same Judge.
type Checker interface {
	Judge() Judge
}

// Query is one sender to be judged.
type Query struct {
	Stage Stage // Envelope or Header

	// Address is the address as it was written, "" for the null reverse-path.
	// With a Reading other than ReadAddress it may be a local part and an "@".
	Address string
	Reading Reading

	// For says what counts for the recipient. The zero value is that of recipients who
	// have no say.
	For For
}

// For says what counts for a recipient, or for several that are alike.
type For struct {
	// Lists are the names of the lists that count; nil: all.
	Lists []string

	// Keys are the keys under which lists hold entries for the recipient, the most
	// specific first; see [RecipientJudge].
	Keys []string

	// Others are such keys of other recipients to whom a mail server may deliver instead. A
	// Judge is asked about each, without Others, and the strictest verdict counts.
	Others [][]string
}

// RecipientJudge is a Judge that may have lists with entries for single recipients.
type RecipientJudge interface {
	Judge

	// KeysOf returns the keys under which lists hold entries for a recipient, the most
	// specific first: "ann@example.net", "@example.net". For nearly every recipient there
	// is none. The error wraps ErrNoAnswer.
	KeysOf(r Recipient) ([]string, error)
}

// Message holds the facts about one message, as far as they are known when a
// sender is judged. What is not known is zero.
type Message struct {
	Door     string // the protocol by which we are asked: "proxy"
	Listener string // its name, "" if there is only one

	Client netip.AddrPort
	Helo   string
	Login  string // of the authenticated client, as far as it is known

	// ClientNamed says that a proxy named the client (PROXY, XCLIENT), ClientIsProxy that
	// the client is a trusted proxy that named nobody. SPF needs the address of the
	// server that sends the message.
	ClientNamed   bool
	ClientIsProxy bool

	ReversePath string      // without brackets, "" for the null reverse-path
	Recipients  []Recipient // those that were taken so far

	HeaderSenders []HeaderSender // in the order of the header section

	// HeaderKnown says that the header section was read. FromFields and Signatures are
	// set then, if a verdict depends on them: the number of From fields, and the first
	// MaxSignatures DKIM signatures.
	HeaderKnown bool
	FromFields  int
	Signatures  []Signature

	// EnvelopeOnly says that the door never sees more of the message than its envelope, and
	// takes pending proofs for proven.
	EnvelopeOnly bool

	BodyKnown bool // the whole message was read, and no signature is pending
}

// HeaderSender is one address and the header field that names it.
type HeaderSender struct {
	// Field is the name as it was asked for.
	Field string

	// Address is an addr-spec, local-part@domain, with the local part quoted
	// where RFC 5321 wants it and only there. Upper case, IDNs and address
	// literals are as they came; white space, comments, empty labels and
	// invisible characters are gone. Bytes that are no UTF-8 are read as
	// Windows-1252, as mail readers do. The domain may be one that no DNS has.
	Address string
}

// Recipient is a forward-path, parsed once for all who ask about it.
type Recipient struct {
	Path string // as the client wrote it, without brackets

	// Local and Domain are its two sides in the normal form that senders have.
	// Domain is empty for postmaster alone.
	Local, Domain string
}

// ParseRecipient parses a forward-path without brackets. Paths without a normal
// form are only lower-cased.
func ParseRecipient(path string) Recipient {
	if a, err := sender.Parse(path); err == nil {
		return Recipient{path, a.Local(), a.Domain()}
	}
	local, domain := split(path)
	return Recipient{path, strings.ToLower(local), strings.ToLower(domain)}
}

// LocalPart returns the local part as the client wrote it, quotes included.
func (r Recipient) LocalPart() string {
	local, _ := split(r.Path)
	return local
}

// split returns what stands before and after the last "@".
func split(path string) (local, domain string) {
	if pos := strings.LastIndexByte(path, '@'); pos >= 0 {
		return path[:pos], path[pos+1:]
	}
	return path, ""
}
