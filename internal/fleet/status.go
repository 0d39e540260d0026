package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Status is the state of the member, as it knows it without asking anybody.
type Status struct {
	Name      string `json:"name"`
	Connected bool   `json:"connected"`
	Server    string `json:"server,omitempty"`

	// Servers are those that hold the lists, if they are more than one, by name.
	Servers []Server `json:"servers,omitempty"`

	Trouble  string `json:"trouble,omitempty"` // why the fleet cannot be used
	ReadOnly bool   `json:"read_only,omitempty"`
	Clash    string `json:"clash,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // what is wrong on this gate, apart from the lists

	Clock time.Duration `json:"clock,omitempty"` // how far the own clock is ahead of the servers'

	Lists []ListStatus `json:"lists,omitempty"`

	// Since the start.
	Applied   int64 `json:"applied"`   // versions that were taken
	Published int64 `json:"published"` // versions that this gate has made
	Conflicts int64 `json:"conflicts"` // attempts for which another gate was faster
	Refused   int64 `json:"refused"`   // edits that the fleet did not take
	Connects  int64 `json:"connects"`
	Panics    int64 `json:"panics"`
}

// Server is a NATS server that holds the lists.
type Server struct {
	Name      string `json:"name"`
	Connected bool   `json:"connected"` // with the others
}

// lostServer is after how long a server counts as lost that the others do not hear. They hear each other
// every second.
const lostServer = 10 * time.Second

// serversOf returns the servers of a stream; nil if it is on one alone.
func serversOf(info *jetstream.StreamInfo) (all []Server) {
	if info.Cluster == nil || len(info.Cluster.Replicas) == 0 {
		return nil
	}
	if info.Cluster.Leader != "" {
		all = append(all, Server{info.Cluster.Leader, true})
	}
	for _, r := range info.Cluster.Replicas {
		heard := r.Active > 0 || r.Current // 0: never by this leader
		all = append(all, Server{r.Name, !r.Offline && heard && r.Active < lostServer})
	}
	slices.SortFunc(all, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ConnectedServers returns how many of Servers are connected, and the names of the others.
func (s *Status) ConnectedServers() (n int, missing []string) {
	for _, server := range s.Servers {
		if server.Connected {
			n++
		} else {
			missing = append(missing, server.Name)
		}
	}
	return n, missing
}

// floodAge is how long it is said that there are too many signs of life, unless Members looks again.
const floodAge = time.Minute

// Status returns the state of the member.
func (m *Member) Status() Status {
	s := Status{
		Name: m.o.Name, Lists: m.listStatus(),
		Applied: m.counters.applied.Load(), Published: m.counters.published.Load(), Conflicts: m.counters.conflicts.Load(),
		Refused: m.counters.refused.Load(), Connects: m.counters.connects.Load(), Panics: m.counters.panics.Load(),
	}
	m.signs.mu.Lock()
	clash, flooded := m.signs.clash, m.signs.flooded
	m.signs.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Connected = m.buckets != nil && m.isLinked()
	if s.Connected {
		s.Server, s.Servers = m.nc.ConnectedUrlRedacted(), m.servers
	} else if err := m.reason(); err != nil {
		s.Trouble = err.Error()
	}
	if time.Since(flooded) < floodAge {
		s.Warnings = append(s.Warnings, fmt.Sprintf("there are more signs of life than %d members give: somebody with the credentials of the fleet writes them; replace the credentials on all gates and servers", maxMembers))
	}
	s.ReadOnly, s.Clash, s.Clock = m.readOnly != nil, clash, -m.clock
	return s
}

// reason returns why the fleet cannot be used. The handlers do not get the errors of a handshake,
// such as a certificate that has expired. The caller has the lock.
func (m *link) reason() error {
	if err := m.nc.LastError(); err != nil && !m.nc.IsConnected() {
		return withAdvice(err)
	}
	return m.trouble
}
