package check

import (
	"context"
	"io"
	"slices"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/setup"
)

// Now says, for other commands, what the gate would do with senders now.
type Now struct {
	config *config.Config
	set    *blocklist.Set
	dns    *dnslist.Client
}

// NewNow reads the lists, and reports their problems on stderr. Lists in DNS can be asked until
// ctx ends.
func NewNow(ctx context.Context, c *config.Config, stderr io.Writer) (*Now, error) {
	set, err := buildSet(ctx, c, stderr)
	if err != nil {
		return nil, err
	}
	client, err := openDNS(c)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, client.Close)
	return &Now{c, set, client}, nil
}

// Question is what Now is asked about.
type Question struct {
	Listener   string   // or door; "" is the first listener, or all doors
	Address    string   // of the sender
	InHeader   bool     // the sender stood in the header only
	Recipients []string // those that the listener would refuse are omitted
}

// Result returns what "check --json" prints for an address.
func (n *Now) Result(q Question) (any, error) {
	k, err := n.session(q)
	if err != nil {
		return nil, err
	}
	r, err := k.resultOfNamed(q.Address)
	return r.addressResult, err
}

// Print prints what "check" prints for an address.
func (n *Now) Print(w io.Writer, q Question) error {
	k, err := n.session(q)
	if err != nil {
		return err
	}
	k.printTo(w)
	return k.printNamed(q.Address)
}

func (n *Now) session(q Question) (*session, error) {
	judged, err := findJudged(n.config, q.Listener)
	if err != nil {
		return nil, err
	}
	k := newSession(n.config, n.set, judged)
	if k.byDoors {
		k.doors = doorSessions(n.config, n.set, checkOptions{listener: q.Listener})
	}
	k.askThrough(n.dns)
	k.inHeader = q.InHeader
	for _, d := range k.doors {
		d.inHeader = q.InHeader
	}
	if len(q.Recipients) > 0 {
		if err := k.readRules(); err != nil {
			return nil, err
		}
		k.options.rcpts = q.Recipients
		k.setRecipients(k.takenRecipients())
	}
	return k, nil
}

// findJudged returns the listener or door of a name. If name is "" it returns the first
// listener, or, if there is none, the first door with the lists of all doors.
func findJudged(c *config.Config, name string) (setup.Judged, error) {
	judged, err := setup.FindJudged(c, name)
	if err != nil || name != "" || judged.Door == nil {
		return judged, err
	}
	for _, d := range c.Doors()[1:] {
		if len(judged.Lists) == 0 || len(d.Lists) == 0 {
			judged.Lists = nil // all
			break
		}
		judged.Lists = append(slices.Clip(judged.Lists), d.Lists...)
	}
	return judged, nil
}

// newSession returns a session that judges as a listener or door does.
func newSession(c *config.Config, set *blocklist.Set, as setup.Judged) *session {
	return &session{
		config:  c,
		judge:   judge.New(set.Only(as.Lists).Unwrapping(setup.Wrappings(c))),
		alike:   stagesAlike(c, as.Lists),
		policy:  as.Policy,
		byDoors: as.Door != nil,
		unasked: listsByRecipient(c, as.Lists),
	}
}
