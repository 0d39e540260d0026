package natsserver

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// cluster starts servers, and waits until they have a leader.
func cluster(t testing.TB, all []Options) []*Server {
	t.Helper()
	servers := make([]*Server, len(all))
	for i, o := range all {
		servers[i] = start(t, o)
	}
	for _, s := range servers {
		joined(t, s, len(all))
	}
	return servers
}

func joined(t testing.TB, s *Server, n int) {
	t.Helper()
	eventually(t, s.o.Name+" has joined", func() bool { st := s.Status(); return st.Leader != "" && st.Connected == n })
}

// TestQuorum stops servers of three: two of them go on, one does not.
func TestQuorum(t *testing.T) {
	t.Parallel()
	all := options(t, 3)
	servers := cluster(t, all)
	kv := bucket(t, connect(t, nats.Token(token), all...), "b", 3)
	write := func(value string) {
		t.Helper()
		eventually(t, "it can be written", func() bool { return put(kv, "k", value) == nil })
	}
	write("three")
	servers[0].Close()
	write("two")
	servers[1].Close()
	eventually(t, "the last one knows that it is alone", func() bool { return servers[2].Status().Leader == "" })
	if err := put(kv, "k", "one"); err == nil {
		t.Error("a server without a quorum has taken a write")
	}
	if p := servers[2].Status().Problem; p == "" {
		t.Error("the status names no problem")
	}
	servers[0] = start(t, all[0])
	write("two again")

	// A server that has lost its store gets everything from the others.
	if err := os.RemoveAll(all[1].Dir); err != nil {
		t.Fatal(err)
	}
	servers[1] = start(t, all[1])
	joined(t, servers[1], 3)
	eventually(t, "the new store is current", func() bool {
		return servers[1].nats.JetStreamIsStreamCurrent("$G", "KV_b")
	})
	servers[0].Close()
	eventually(t, "the value is there without the others", func() bool { return get(kv, "k") == "two again" })
}

// TestRouteCredentials has a server with another token, which neither reads nor votes.
func TestRouteCredentials(t *testing.T) {
	all := options(t, 3)
	var log, strangers logged
	for i := range all {
		all[i].Logger = log.logger()
	}
	servers := cluster(t, all)
	kv := bucket(t, connect(t, nats.Token(token), all...), "b", 3)
	if err := put(kv, "k", "v"); err != nil {
		t.Fatal(err)
	}
	o := options(t, 1)[0]
	o.Name, o.Cluster, o.Routes, o.Logger = "stranger", freeAddr(t), all[0].Routes, strangers.logger()
	o.Credentials = secret(t, "another-token")
	stranger := start(t, o)
	eventually(t, "it is refused and knows", func() bool { return strings.Contains(strangers.String(), "another server has other credentials") })
	eventually(t, "the others know", func() bool { return strings.Contains(log.String(), "a server with other credentials wanted to join") })
	if st := stranger.Status(); st.Connected != 1 || st.Leader != "" || !strings.Contains(st.Problem, "credentials") {
		t.Errorf("status %+v", st)
	}
	for _, s := range servers {
		joined(t, s, 3)
	}
	if strings.Contains(log.String()+strangers.String(), token) {
		t.Error("the log has a token")
	}
}

// TestSameName has two servers with one name.
func TestSameName(t *testing.T) {
	all := options(t, 3)
	all[1].Name = all[0].Name
	var logs [3]logged
	for i := range all {
		all[i].Logger = logs[i].logger()
		start(t, all[i])
	}
	eventually(t, "the log says it", func() bool {
		return strings.Contains(logs[0].String()+logs[1].String(), "two servers have one name")
	})
}

// TestOthers tells the routes to other servers from those to this one.
func TestOthers(t *testing.T) {
	for _, c := range []struct {
		cluster string
		routes  []string
		want    int
	}{
		{"127.0.0.1:6222", []string{"nats://127.0.0.1:6222", "nats://198.51.100.1:6222", "nats://198.51.100.2:6222"}, 3},
		{"127.0.0.1:6222", []string{"nats://198.51.100.1:6222", "nats://198.51.100.2:6222"}, 3},
		{":6222", []string{"nats://localhost:6222", "nats://198.51.100.2:6222"}, 2},
		{"127.0.0.1:6222", []string{"nats://127.0.0.1:6223", "nats://127.0.0.1:6224"}, 3},
		{"127.0.0.2:6222", []string{"nats://127.0.0.3:6222", "nats://127.0.0.4:6222"}, 3},
		{"localhost:6222", []string{"nats://127.0.0.1:6222"}, 1},
		{"", nil, 1},
	} {
		s := &Server{o: Options{Cluster: c.cluster, Routes: c.routes}}
		if got := 1 + len(s.others()); got != c.want {
			t.Errorf("%v: %d servers", c, got)
		}
	}
}

// TestOutput bounds the log.
func TestOutput(t *testing.T) {
	var log logged
	o := newOutput(log.logger())
	for i := range 1000 {
		o.Errorf("198.51.100.1:%d - cid:%d - authentication error", i, i)
	}
	if n := strings.Count(log.String(), "\n"); n != maxLines {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(log.String(), "a client has other credentials") {
		t.Error(log.String())
	}
	o.begin = o.begin.Add(-2 * 60e9)
	o.Warnf("later")
	if !strings.Contains(log.String(), fmt.Sprint("suppressed=", 1000-maxLines)) {
		t.Error(log.String())
	}
}
