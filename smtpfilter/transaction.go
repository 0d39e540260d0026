package smtpfilter

import (
	"crypto/rand"
	"slices"
	"time"

	"spamgate/blocklist/verdict"
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
	exempt   string          // why the client is exempt from the lists: "client", "authenticated"
	judge    verdict.Judge   // nil for an exempt client
	message  verdict.Message // for the judge
	envelope verdict.Finding
	findings []verdict.Finding // of the header

	next      nexthop.Transaction // begun with MAIL, connects at the first recipient
	accepted  []recipient         // by the next hop
	discarded []wire.Path         // accepted by the gate, which drops the message
	deferred  []wire.Path         // refused for now by the next hop
	group     partial.Group       // of the accepted recipients
	digest    *partial.Digest     // of the message; nil without a Memory
	messageID string

	outcome Outcome // of the last decision
	counted bool    // by the Meter
}

// recipient is a recipient that the client may send the message to.
type recipient struct {
	path   wire.Path
	params []string
	exempt bool

	entries []partial.Entry // in the Memory
	refusal wire.Reply      // the next hop's, if the recipient may have the message already
}

// newID returns the id of a transaction in replies, trace fields and the log: 60 random
// bits.
func newID() string { return rand.Text()[:12] }

// onlyExempt reports whether every recipient is reachable by every sender.
func (t *transaction) onlyExempt() bool {
	return len(t.discarded) == 0 && !slices.ContainsFunc(t.accepted, func(r recipient) bool { return !r.exempt })
}

// recipients returns all recipients that the client received 250 for.
func (t *transaction) recipients() []wire.Path {
	return append(t.recipientsWith(func(int) bool { return true }), t.discarded...)
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

// discarder returns the finding that causes recipients to be discarded.
func (t *transaction) discarder(worst verdict.Finding) verdict.Finding {
	if t.envelope.Verdict.Action == verdict.Discard {
		return t.envelope
	}
	return worst
}
