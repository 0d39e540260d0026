package partial

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// State is what became of a message for one recipient.
type State uint8

// The states.
const (
	// Settled says that the client has received the final reply. It is never stored.
	Settled State = iota

	Delivered // the recipient has the message
	Pending   // refused for now, or the outcome is unknown
	Refused   // refused for good
)

var stateNames = [...]string{"settled", "delivered", "pending", "refused"}

// String returns the state's name, as in the file.
func (s State) String() string { return stateNames[s] }

// Sum identifies a message; see [NewDigest].
type Sum [sha256.Size]byte

// Entry is what is known of a recipient and one message.
type Entry struct {
	Message Sum
	State   State
	Words   uint64 // for Refused: a hash of the reply, without the recipient's address

	// Old says that the client has not come back for the message for a day. The entry
	// no longer separates recipients.
	Old bool
}

// Outcome is what a server has replied for a recipient.
type Outcome struct {
	To    string // the forward-path
	State State
	Words string // for Refused: the reply, without the recipient's address
}

// pair is a hash of a reverse-path and a forward-path.
type pair [16]byte

// newPair returns the pair of two paths.
func newPair(from, to string) (p pair) {
	h := sha256.New()
	writeField(h, from)
	writeField(h, to)
	copy(p[:], h.Sum(nil))
	return p
}

// hashWords returns a hash of a reply.
func hashWords(reply string) uint64 {
	sum := sha256.Sum256([]byte(reply))
	return binary.BigEndian.Uint64(sum[:8])
}

// Group is the recipients of a transaction. It keeps the entries that they have in
// common. The zero Group is empty.
type Group struct {
	begun  bool
	common []Entry // that each recipient has, in the same state
}

// Empty reports whether the group has no recipient.
func (g *Group) Empty() bool { return !g.begun }

// Add adds a recipient with its entries, and reports whether it can share a transaction
// with the others. If not, the group does not change.
func (g *Group) Add(entries []Entry) bool {
	if !g.begun {
		g.begun, g.common = true, entries
		return true
	}
	var common []Entry
	for _, e := range g.common {
		i := slices.IndexFunc(entries, func(other Entry) bool { return other.Message == e.Message })
		if i < 0 {
			continue
		}
		other := entries[i]
		if e.State != other.State || e.Words != other.Words {
			if e.Old || other.Old {
				continue
			}
			return false
		}
		e.Old = e.Old && other.Old
		common = append(common, e)
	}
	g.common = common
	return true
}

// MayHave reports whether all recipients have some message in common.
func (g *Group) MayHave() bool { return g.begun && HasAny(g.common) }

// Has reports whether an entry says that its recipient has a message.
func Has(entries []Entry, message Sum) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Message == message && e.State == Delivered })
}

// HasAny reports whether an entry says that its recipient has some message.
func HasAny(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.State == Delivered })
}
