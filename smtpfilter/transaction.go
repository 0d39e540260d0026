package smtpfilter

import (
	"crypto/rand"
	"slices"
	"time"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// transaction is the state of one message.
type transaction struct {
	id       string
	began    time.Time
	settings *Settings
	client   nexthop.Client
	from     wire.Path
	params   []string
	utf8     bool
	tags     []string // what the tag fields hold that the next hop has

	Judgement

	next      nexthop.Transaction // begun with MAIL, connects at the first recipient
	accepted  []recipient         // by the next hop
	discarded []recipient         // accepted by the gate, which drops the message
	deferred  []wire.Path         // refused for now by the next hop
	group     partial.Group       // of the accepted recipients
	digest    *partial.Digest     // of the message; nil without a Memory
	messageID string

	outcome  Outcome // of the last decision
	counted  bool    // by the Meter
	recorded bool    // by the History, a decision at least
}

// recipient is a recipient that the client may send the message to.
type recipient struct {
	path   wire.Path
	params []string
	class  *Class

	entries []partial.Entry // in the Memory
	refusal wire.Reply      // the next hop's, if the recipient may have the message already
}

// newID returns the id of a transaction in replies, trace fields and the log: 60 random
// bits.
func newID() string { return rand.Text()[:12] }

// refusing returns the recipients for whom a message is refused that others take.
func (t *transaction) refusing() []wire.Path {
	refuses := t.Refusing()
	return t.recipientsWith(func(i int) bool { return refuses(t.accepted[i].class) })
}

// drop moves the recipients for whom the message is dropped to the discarded ones.
func (t *transaction) drop() {
	t.accepted = slices.DeleteFunc(t.accepted, func(r recipient) bool {
		if r.class.Dropped {
			t.discarded = append(t.discarded, r)
		}
		return r.class.Dropped
	})
}

// recipients returns all recipients that the client received 250 for.
func (t *transaction) recipients() []wire.Path {
	return append(t.recipientsWith(func(int) bool { return true }), paths(t.discarded)...)
}

// texts returns paths as texts, nil for nil.
func texts(paths []wire.Path) []string {
	if paths == nil {
		return nil
	}
	texts := make([]string, len(paths))
	for i, p := range paths {
		texts[i] = p.String()
	}
	return texts
}

// paths returns the paths of recipients.
func paths(recipients []recipient) []wire.Path {
	paths := make([]wire.Path, len(recipients))
	for i, r := range recipients {
		paths[i] = r.path
	}
	return paths
}

// recipientsWith returns the accepted recipients for whose index keep is true.
func (t *transaction) recipientsWith(keep func(i int) bool) []wire.Path {
	paths := make([]wire.Path, 0, len(t.accepted)+len(t.discarded))
	for i, r := range t.accepted {
		if keep(i) {
			paths = append(paths, r.path)
		}
	}
	return paths
}
