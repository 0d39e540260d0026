package nexthop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/smtpfilter/wire"
)

// A gate asks its next hop while its client waits, and so do all gates behind it: in a
// loop of gates one recipient would take connections until there are none left, and no
// Received field would ever be written. So each gate tells in its EHLO reply which gates
// mail passes from there on (wire.PathKeyword): itself, and those that its next hop has
// told it of. A gate that is told of itself gives its next hop no mail.
//
// Names would not do. A mail server behind the gate has the gate's own name more often
// than not, and two gates in a loop may have two.

// ErrLoop says that a next hop is the gate itself, or leads back to it.
var ErrLoop = errors.New("mail loop")

// A gate tells of so many gates, with ids of so many bytes, that all go in one line of a
// reply (512 bytes). What is more, or longer, is no gate's.
const (
	maxPath   = 30
	maxGateID = 15
)

// Path returns the ids of the gates that mail to a target passes, as far as they are
// known, in any order.
//
// Of a group these are the gates that mail passes whichever member takes it, of those
// that are up, or of all if none is. A gate that is a member besides a mail server is on
// the path only while the group asks it: when the mail server has failed, say. So two
// gates may serve for each other. If both their mail servers are down, the second gate
// reads its own id when it turns back to the first.
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

// path is Path for a group.
func (g *Group) path() []string {
	members := g.upOrAll()
	all := slices.Clone(Path(members[0].Target))
	for _, m := range members[1:] {
		of := Path(m.Target)
		all = slices.DeleteFunc(all, func(id string) bool { return !slices.Contains(of, id) })
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
// behind which this one is.
func (s *SMTP) checkLoop(c *conn) error {
	path, told := c.offers[wire.PathKeyword]
	switch i := slices.Index(path, s.config.GateID); {
	case i == 0 && s.config.GateID != "":
		return fmt.Errorf("%w: the next hop is this gate itself", ErrLoop)
	case i > 0 && s.config.GateID != "":
		return fmt.Errorf("%w: the next hop is a gate whose mail comes back to this one", ErrLoop)
	case !told && s.greetsWithOurName(c):
		return fmt.Errorf("%w: the next hop greets as this gate does (%q); if it is another gate, give it a hostname of its own",
			ErrLoop, c.greeting)
	}
	return nil
}

// greetsWithOurName reports whether the greeting is our own: that of a gate with our hostname.
// A mail server of that name says something else behind it.
func (s *SMTP) greetsWithOurName(c *conn) bool {
	return strings.EqualFold(c.greetingText(), wire.Greeting(s.config.Hostname))
}

// learnPath remembers which gates the server has told of, but for this one.
func (k *known) learnPath(offers wire.Extensions, own string) {
	path := slices.Clone(offers[wire.PathKeyword])
	path = slices.DeleteFunc(path, func(id string) bool { return len(id) > maxGateID || id == own })
	path = path[:min(len(path), maxPath)]
	if before := k.path.Load(); before == nil || !slices.Equal(*before, path) {
		k.path.Store(&path)
	}
}
