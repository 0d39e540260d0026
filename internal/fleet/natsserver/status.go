package natsserver

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/text"
)

// Status is the state of a server.
type Status struct {
	Running bool
	Clients int

	Servers   int      // of the cluster, as configured
	Connected int      // of them, this one included
	Missing   []string // names of the others, which only the leader knows
	Leader    string   // the server that decides; empty: there is no quorum
}

// String returns the state as a line.
func (st Status) String() string {
	switch problem := st.Problem(); {
	case !st.Running:
		return "the store has failed, and the server starts again"
	case problem != "":
		return problem
	}
	return fmt.Sprintf("%d of %d servers connected, %s", st.Connected, st.Servers, text.Count(st.Clients, "client", "clients"))
}

// Problem says which servers are missing; "": none.
func (st Status) Problem() string {
	if st.Leader != "" && st.Connected >= st.Servers {
		return ""
	}
	problem := fmt.Sprintf("servers connected: %d of %d", st.Connected, st.Servers)
	if len(st.Missing) > 0 {
		problem += ", without " + strings.Join(st.Missing, ", ")
	}
	if st.Leader == "" {
		problem += "; they have no leader, which more than half of them elect, and edits are refused"
	}
	return problem
}

// Status returns how the server is.
func (s *Server) Status() Status {
	st := Status{Servers: s.servers()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nats == nil || !s.nats.JetStreamEnabled() {
		return st
	}
	st.Running, st.Clients, st.Connected, st.Leader = true, s.nats.NumClients(), 1, s.o.Name
	if s.o.Cluster != "" {
		askCluster(s.nats, &st)
	}
	return st
}

// askCluster asks the NATS server for the others.
func askCluster(n *server.Server, st *Status) {
	st.Leader = ""
	connected := map[string]bool{}
	if routes, err := n.Routez(nil); err == nil {
		for _, r := range routes.Routes { // several to each server
			connected[r.RemoteName] = true
		}
	}
	st.Connected = 1 + len(connected)
	if js, err := n.Jsz(nil); err == nil && js.Meta != nil {
		st.Leader = js.Meta.Leader
		for _, r := range js.Meta.Replicas {
			if !connected[r.Name] {
				st.Missing = append(st.Missing, r.Name)
			}
		}
	}
	slices.Sort(st.Missing)
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
