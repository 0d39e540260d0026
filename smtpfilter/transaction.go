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
	classes  Classes         // of the recipients
	first    [1]*Class       // see used
	decided  Conclusion      // at the end of the header, and again at that of the message
	tags     []string        // what the tag fields hold that the next hop has
	observed []place         // of the entries that only monitor, as far as they were logged

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

// used returns the classes of recipients, each once, until the next call.
func (t *transaction) used(of ...[]recipient) []*Class {
	classes := t.first[:0]
	var seen map[*Class]bool // mostly there is one class
	for _, recipients := range of {
		for _, r := range recipients {
			switch {
			case len(classes) > 0 && r.class == classes[len(classes)-1] || seen[r.class]:
				continue
			case len(classes) == 1:
				seen = map[*Class]bool{classes[0]: true}
			}
			classes = append(classes, r.class)
			if seen != nil {
				seen[r.class] = true
			}
		}
	}
	return classes
}

// refusing returns the recipients for whom the message is refused; if there is none, those for
// whom it is discarded.
func (t *transaction) refusing() []wire.Path {
	for _, is := range []func(verdict.Action) bool{verdict.Action.Refuses, verdict.Action.Drops} {
		paths := t.recipientsWith(func(i int) bool { return is(t.accepted[i].class.deciding().Verdict.Action) })
		if len(paths) > 0 {
			return paths
		}
	}
	return nil
}

// shown returns the finding that a line about an accepted message shows, what was done because
// of it, and why a listed sender passed.
func (t *transaction) shown() (f *verdict.Finding, action verdict.Action, exempt string) {
	var all, pass []*verdict.Finding
	refusing := &noFinding
	for _, class := range t.used(t.accepted) {
		all = append(all, class.findings()...)
		switch of := class.deciding(); {
		case of.Verdict.Action < verdict.Defer:
			pass = append(pass, of)
		case of.Verdict.Action > refusing.Verdict.Action:
			refusing = of
		}
	}
	strictest, passing := strictestOf(all), strictestOf(pass)
	switch {
	case refusing.Verdict.Action > verdict.Accept: // and others are not, so that the message has a tag
		return refusing, verdict.Tag, t.exempt
	case passing.Verdict.Action > verdict.Accept: // not what discards it for others
		return passing, passing.Verdict.Action, t.exempt
	case strictest.Verdict.Action > verdict.Tag:
		return strictest, verdict.Accept, "recipient" // the sender is listed, but every recipient is exempt
	default:
		return strictest, verdict.Accept, t.exempt
	}
}

// strictestOf returns the strictest of findings, see [verdict.Strictest]. It must not be changed.
func strictestOf(findings []*verdict.Finding) *verdict.Finding {
	if f := verdict.Deciding(findings, false); f != nil {
		return f
	}
	return &noFinding
}

// onlyExempt reports whether every recipient is reachable by every sender.
func (t *transaction) onlyExempt() bool {
	return !slices.ContainsFunc(t.used(t.accepted, t.discarded), func(c *Class) bool { return !c.Exempt })
}

// recipients returns all recipients that the client received 250 for.
func (t *transaction) recipients() []wire.Path {
	return append(t.recipientsWith(func(int) bool { return true }), paths(t.discarded)...)
}

// texts returns paths as texts.
func texts(paths []wire.Path) []string {
	var texts []string
	for _, p := range paths {
		texts = append(texts, p.String())
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
