package nexthop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/smtpfilter/wire"
)

// A gate asks its next hop while its client waits, and so do all gates after it. In a
// loop of gates one recipient would use up all connections, without a Received field
// ever being written. So each gate lists in its EHLO reply the gates that mail passes
// from there on (wire.PathKeyword): itself, and those in its next hop's list. A gate
// that finds itself in the list sends its next hop no mail.
//
// Host names do not help: a mail server often has the same name as its gate, and two
// gates in a loop may have two names.

// ErrLoop says that a next hop is the gate itself, or leads back to it.
var ErrLoop = errors.New("mail loop")

// Limits of the list, which must fit in one line of a reply (512 bytes).
const (
	maxPath   = 30
	maxGateID = 15
)

// Path returns the ids of the gates that mail to a target passes, as far as they are
// known, in any order.
//
// For a group these are the gates that mail passes whichever member gets it, of those
// that are up, or of all if none is. A gate that is a member beside a mail server is
// on the path only while the group asks it, for instance after the mail server has
// failed. So two gates may replace each other. If both their mail servers are down,
// the second gate finds its own id when it turns to the first.
func Path(t Target) []string {
	switch t := t.(type) {
	case *SMTP:
		if path := t.known.path.Load(); path != nil {
			return *path
		}
	case *Group:
		return t.path()
	}
	return nil
}

// path returns the Path of a group.
func (g *Group) path() []string {
	members := g.upOrAll()
	all := slices.Clone(Path(members[0].Target))
	for _, m := range members[1:] {
		names := Path(m.Target)
		all = slices.DeleteFunc(all, func(id string) bool { return !slices.Contains(names, id) })
	}
	for _, m := range g.members {
		if m.asking.Load() == 0 {
			continue
		}
		for _, id := range Path(m.Target) {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all[:min(len(all), maxPath)]
}

// checkLoop returns an error that wraps ErrLoop if the server is this gate, or a gate
// that leads back to it.
func (s *server) checkLoop(c *conn) error {
	path, isGate := c.offers[wire.PathKeyword]
	switch i := slices.Index(path, s.config.GateID); {
	case i == 0 && s.config.GateID != "":
		return fmt.Errorf("%w: the next hop is this gate itself", ErrLoop)
	case i > 0 && s.config.GateID != "":
		return fmt.Errorf("%w: the next hop is a gate whose mail comes back to this one", ErrLoop)
	case !isGate && s.greetsWithOurName(c):
		return fmt.Errorf("%w: the next hop greets as this gate does (%q); if it is another gate, give it a hostname of its own",
			ErrLoop, c.greeting)
	}
	return nil
}

// greetsWithOurName reports whether the greeting is that of a gate with our hostname.
// After the name, the greeting of a mail server differs.
func (s *server) greetsWithOurName(c *conn) bool {
	return strings.EqualFold(c.greetingText(), wire.Greeting(s.config.Hostname))
}

// learnPath remembers the gates in the server's list, without this one.
func (k *known) learnPath(offers wire.Extensions, own string) {
	path := slices.Clone(offers[wire.PathKeyword])
	path = slices.DeleteFunc(path, func(id string) bool { return len(id) > maxGateID || id == own })
	path = path[:min(len(path), maxPath)]
	if before := k.path.Load(); before == nil || !slices.Equal(*before, path) {
		k.path.Store(&path)
	}
}
