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
	// Settled says that the client has had the final reply: nothing is kept.
	Settled State = iota

	Delivered // the recipient has the message
	Pending   // refused for now, or unknown
	Refused   // refused for good
)

var stateNames = [...]string{"settled", "delivered", "pending", "refused"}

// String is the state's name, as in the file.
func (s State) String() string { return stateNames[s] }

// Sum tells messages apart; see [NewDigest].
type Sum [sha256.Size]byte

// Entry is what is known of a recipient and one message.
type Entry struct {
	Message Sum
	State   State
	Words   uint64 // for Refused: a hash of the reply, without the recipient's address

	// Old says that the client has not come for the message for a day. It may never do
	// so, and the entry keeps no recipients apart any more.
	Old bool
}

// Outcome is what a server has said of a recipient.
type Outcome struct {
	To    string // the forward-path
	State State
	Words string // for Refused: the reply, without the recipient's address
}

// pair is a hash of a reverse-path and a forward-path.
type pair [16]byte

func pairOf(from, to string) (p pair) {
	h := sha256.New()
	writeField(h, from)
	writeField(h, to)
	copy(p[:], h.Sum(nil))
	return p
}

// wordsOf hashes a reply.
func wordsOf(reply string) uint64 {
	sum := sha256.Sum256([]byte(reply))
	return binary.BigEndian.Uint64(sum[:8])
}

// Group is the recipients of a transaction, of which it keeps what they have in
// common. The zero Group has none.
type Group struct {
	begun  bool
	common []Entry // of each recipient, in the same state
}

// Empty reports whether no recipient was added.
func (g *Group) Empty() bool { return !g.begun }

// Add adds a recipient with its entries, and reports whether it can go with the
// others. If it cannot, the group is as before.
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
		old := e.Old || other.Old
		if e.State != other.State || e.Words != other.Words {
			if old {
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

// MayHave reports whether there is a message that all recipients have.
func (g *Group) MayHave() bool { return g.begun && HasAny(g.common) }

// Has reports whether an entry says that its recipient has a message.
func Has(entries []Entry, message Sum) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Message == message && e.State == Delivered })
}

// HasAny reports whether an entry says that its recipient has some message.
func HasAny(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.State == Delivered })
}
