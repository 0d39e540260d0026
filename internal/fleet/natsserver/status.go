package natsserver

import (
	"io/fs"
	"path/filepath"
	"time"
)

// Status says how a server is.
type Status struct {
	Name    string `json:"name"`
	Listen  string `json:"listen"`
	Clients int    `json:"clients"`
	Bytes   int64  `json:"bytes"` // of the store

	Servers   int    `json:"servers"`          // of the cluster, as configured
	Connected int    `json:"connected"`        // of them, this one included
	Leader    string `json:"leader,omitempty"` // the server that decides; empty: there is no quorum

	// Problem is what is wrong, or was within the last minutes.
	Problem string `json:"problem,omitempty"`
}

// problemAge is how long a problem is shown.
const problemAge = 2 * time.Minute

// Status returns how the server is.
func (s *Server) Status() Status {
	st := Status{Name: s.o.Name, Listen: s.o.Listen, Servers: s.servers(), Bytes: size(s.o.Dir)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nats == nil || !s.nats.JetStreamEnabled() {
		st.Problem = "the store has failed, and the server starts again"
		if s.err != nil {
			st.Problem += ": " + s.err.Error()
		}
		return st
	}
	st.Clients, st.Connected, st.Leader = s.nats.NumClients(), 1+s.nats.NumRemotes(), s.o.Name
	if s.o.Cluster != "" {
		st.Leader = ""
		if js, err := s.nats.Jsz(nil); err == nil && js.Meta != nil {
			st.Leader = js.Meta.Leader
		}
	}
	st.Problem = s.out.recent(problemAge)
	if st.Problem == "" && st.Leader == "" {
		st.Problem = "most of the servers are not connected"
	}
	return st
}

// size returns how many bytes the files of a directory have.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
