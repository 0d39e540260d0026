package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestServersOf has what a leader says of the others: it says that a server is offline only if that has
// said so itself, and of one that it has never heard that this was active just now.
func TestServersOf(t *testing.T) {
	for _, c := range []struct {
		peer jetstream.PeerInfo
		want bool
	}{
		{jetstream.PeerInfo{Current: true, Active: 700 * time.Millisecond}, true},
		{jetstream.PeerInfo{Active: 700 * time.Millisecond, Lag: 5}, true},
		{jetstream.PeerInfo{Current: true}, true},
		{jetstream.PeerInfo{Lag: 5}, false},
		{jetstream.PeerInfo{Active: time.Minute}, false},
		{jetstream.PeerInfo{Current: true, Active: 700 * time.Millisecond, Offline: true}, false},
	} {
		c.peer.Name = "mx2"
		s := Status{Servers: serversOf(&jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: "mx3", Replicas: []*jetstream.PeerInfo{&c.peer}}})}
		want := fmt.Sprint([]Server{{"mx2", c.want}, {"mx3", true}})
		if n, missing := s.ConnectedServers(); fmt.Sprint(s.Servers) != want || n+len(missing) != 2 || (n == 2) != c.want {
			t.Errorf("%+v: %v, %d connected, without %v", c.peer, s.Servers, n, missing)
		}
	}
	for _, alone := range []*jetstream.StreamInfo{{}, {Cluster: &jetstream.ClusterInfo{Leader: "mx1"}}} {
		if all := serversOf(alone); all != nil {
			t.Error(all)
		}
	}
}
