package fleet

import (
	"fmt"
	"time"
)

// Status is the state of the member, as it knows it without asking anybody.
type Status struct {
	Name      string `json:"name"`
	Connected bool   `json:"connected"`
	Server    string `json:"server,omitempty"`
	Trouble   string `json:"trouble,omitempty"` // why the fleet cannot be used
	ReadOnly  bool   `json:"read_only,omitempty"`
	Clash     string `json:"clash,omitempty"`

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

// floodAge is how long it is said that there are too many signs of life, unless Members looks again.
const floodAge = time.Minute

// Status returns the state of the member.
func (m *Member) Status() Status {
	s := Status{
		Name: m.o.Name, Lists: m.listStatus(),
		Applied: m.counters.applied.Load(), Published: m.counters.published.Load(), Conflicts: m.counters.conflicts.Load(),
		Refused: m.counters.refused.Load(), Connects: m.counters.connects.Load(), Panics: m.counters.panics.Load(),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Connected = m.buckets != nil && m.isLinked()
	if s.Connected {
		s.Server = m.nc.ConnectedUrlRedacted()
	} else if err := m.reason(); err != nil {
		s.Trouble = err.Error()
	}
	if time.Since(m.flooded) < floodAge {
		s.Warnings = append(s.Warnings, fmt.Sprintf("there are more signs of life than %d members give: somebody with the credentials of the fleet writes them; replace the credentials on all gates and servers", maxMembers))
	}
	s.ReadOnly, s.Clash, s.Clock = m.readOnly != nil, m.clash, -m.clock
	return s
}

// reason returns why the fleet cannot be used. The handlers do not get the errors of a handshake,
// such as a certificate that has expired. The caller has the lock.
func (m *Member) reason() error {
	if err := m.nc.LastError(); err != nil && !m.nc.IsConnected() {
		return withAdvice(err)
	}
	return m.trouble
}
