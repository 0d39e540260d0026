package check

import (
	"context"
	"io"

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

// Result returns what "check --json" prints for an address and a listener, of which "" is the
// first.
func (n *Now) Result(listener, address string) (any, error) {
	k, err := n.session(listener)
	if err != nil {
		return nil, err
	}
	r, envelope, header := k.result(address)
	return r, k.notJudged(address, envelope, header)
}

// Print prints what "check" prints for an address and a listener.
func (n *Now) Print(w io.Writer, listener, address string) error {
	k, err := n.session(listener)
	if err != nil {
		return err
	}
	k.printTo(w)
	return k.printNamed(address)
}

func (n *Now) session(name string) (*session, error) {
	judged, err := setup.FindJudged(n.config, name)
	if err != nil {
		return nil, err
	}
	k := newSession(n.config, n.set, judged)
	k.dns = n.dns
	return k, nil
}

// newSession returns a session that judges as a listener or door does.
func newSession(c *config.Config, set *blocklist.Set, as setup.Judged) *session {
	return &session{
		config: c,
		judge:  judge.New(set.Only(as.Lists)),
		alike:  stagesAlike(c, as.Lists),
		policy: as.Policy,
	}
}
