package fleet

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"spamgate/internal/admin"
	"spamgate/internal/fleet"
	"spamgate/internal/term"
)

// printServers prints the servers in the gates, and those that they know.
func printServers(w io.Writer, f *admin.Fleet, width int) {
	own := serversOf(f)
	if len(own) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := term.Table{Columns: []term.Column{
		{Title: "server"}, {Title: "listens at", Left: true, Spare: true}, {Title: "role", Left: true}, {Title: "connected"}, {Title: "clients"}, {Title: "store"},
	}}
	shown := map[string]bool{}
	for _, s := range own {
		shown[s.Name] = true
		t.Add(s.Name, s.Listen, role(s), fmt.Sprintf("%d of %d", s.Connected, s.Servers), fmt.Sprint(s.Clients), term.ByteSize(max(0, s.Bytes)))
	}
	for _, s := range own {
		for _, p := range s.Peers {
			if shown[p.Name] {
				continue
			}
			shown[p.Name] = true
			t.Add(p.Name, "-", map[bool]string{true: "vote", false: "DOWN"}[p.Connected], "-", "-", "-")
		}
	}
	t.Write(w, width)
}

// serversOf returns the servers that say how they are, sorted by name.
func serversOf(f *admin.Fleet) (all []*fleet.ServerStatus) {
	if f.OwnServer != nil {
		all = append(all, f.OwnServer)
	}
	for _, p := range f.Members {
		s := admin.ParseFleetReport(p.Report).Server
		if s != nil && p.Name != f.Name {
			s.Name = p.Name // nobody speaks for others
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *fleet.ServerStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// role says what a server does.
func role(s *fleet.ServerStatus) string {
	switch {
	case !s.Running:
		return "DOWN"
	case s.Leader == "":
		return "NO LEADER"
	}
	return map[bool]string{true: "leader", false: "vote"}[s.Leader == s.Name]
}
