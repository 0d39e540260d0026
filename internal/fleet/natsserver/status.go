package natsserver

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/text"
)

// Status is the state of a server.
type Status struct {
	Running bool
	Clients int

	Servers   int    // of the cluster, as configured
	Connected int    // of them, this one included
	Leader    string // the server that decides; empty: there is no quorum
	Peers     []Peer // the others, as far as this server knows them

	// Cluster says which servers are missing; "": none.
	Cluster string

	// Problems say what is wrong, or was within the last minutes. Notes say which client the server
	// did not let in.
	Problems, Notes []string
}

// Peer is another server of the cluster.
type Peer struct {
	Name      string
	Connected bool
}

// String returns the state as a line.
func (st Status) String() string {
	all := fmt.Sprintf("%d of %d servers connected, %s", st.Connected, st.Servers, text.Count(st.Clients, "client", "clients"))
	if problems := slices.Concat(st.Problems, st.Notes); len(problems) > 0 {
		all += ": " + strings.Join(problems, "; ")
	}
	return all
}

// problemAge is how long a problem or a note is told.
const problemAge = 2 * time.Minute

// Status returns how the server is.
func (s *Server) Status() Status {
	st := Status{Servers: s.servers()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nats == nil || !s.nats.JetStreamEnabled() {
		problem := "the store has failed, and the server starts again"
		if s.err != nil {
			problem += ": " + s.err.Error()
		}
		st.Problems = []string{problem}
		return st
	}
	st.Running, st.Clients, st.Connected, st.Leader = true, s.nats.NumClients(), 1, s.o.Name
	if s.o.Cluster != "" {
		askCluster(s.nats, &st)
	}
	problem, note := s.out.recent(problemAge)
	if note != "" {
		st.Notes = []string{note}
	}
	describe(&st, problem)
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
		for _, r := range js.Meta.Replicas { // which only the leader knows
			if !connected[r.Name] {
				connected[r.Name] = false
			}
		}
	}
	for name, is := range connected {
		st.Peers = append(st.Peers, Peer{Name: name, Connected: is})
	}
	slices.SortFunc(st.Peers, func(a, b Peer) int { return cmp.Compare(a.Name, b.Name) })
}

// describe says what is wrong with a server that runs.
func describe(st *Status, recent string) {
	complete := st.Leader != "" && st.Connected >= st.Servers
	if recent != "" && !(complete && isOver(recent)) {
		st.Problems = append(st.Problems, recent)
	}
	if complete {
		return
	}
	st.Cluster = fmt.Sprintf("servers connected: %d of %d", st.Connected, st.Servers)
	var missing []string
	for _, p := range st.Peers {
		if !p.Connected {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) > 0 {
		st.Cluster += ", without " + strings.Join(missing, ", ")
	}
	if st.Leader == "" {
		st.Cluster += "; they have no leader, which more than half of them elect, and edits are refused"
	}
	st.Problems = append(st.Problems, st.Cluster)
}

// isOver reports whether a text of the NATS server says nothing any more once all servers are
// connected and have a leader: it is about another server, about a stranger in the place of one, or
// about a quorum that was missing.
func isOver(text string) bool {
	return strings.HasPrefix(text, otherServer) || strings.Contains(text, "rid:") || strings.Contains(text, "connect to route") || strings.Contains(text, "has NO quorum")
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
