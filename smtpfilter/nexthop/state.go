package nexthop

// State is what is known of a place that takes mail.
type State struct {
	Target string // its name
	Up     bool   // it answered last
	Known  bool   // it has been asked at all
}

// States tells the state of a target, and of a group's members.
func States(t Target) []State {
	g, ok := t.(*Group)
	if !ok {
		return []State{stateOf(t)}
	}
	var all []State
	for _, m := range g.members {
		s := stateOf(m.Target)
		s.Up = s.Up && m.up()
		all = append(all, s)
	}
	return all
}

// stateOf is the state as the target itself knows it. A Maildir is on this
// machine: it is there, until a delivery fails.
func stateOf(t Target) State {
	s := State{Target: t.String(), Up: true, Known: true}
	if server, ok := t.(*SMTP); ok {
		s.Up, s.Known = server.known.state()
	}
	return s
}

// state reports whether the server has answered when it was last connected to
// or probed, and whether it was at all.
func (k *known) state() (up, known bool) {
	return !k.failing.Load() && k.heard.Load() != 0, k.failing.Load() || k.heard.Load() != 0
}
