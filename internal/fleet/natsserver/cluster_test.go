package natsserver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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
	var log logged
	for i := range all {
		all[i].Logger = log.logger()
	}
	servers := cluster(t, all)
	kv := bucket(t, connect(t, nats.Token(token), all...), "b", 3)
	write := func(value string) {
		t.Helper()
		eventually(t, "it can be written", func() bool { return put(kv, "k", value) == nil })
	}
	write("three")
	servers[0].Close()
	write("two")
	eventually(t, "the leader names who is missing", func() bool {
		return strings.Contains(servers[1].Status().Problem()+servers[2].Status().Problem(), "servers connected: 2 of 3, without mx1")
	})
	eventually(t, "the log names it", func() bool {
		return strings.Contains(log.String(), `msg="servers of the fleet are missing" problem="servers connected: 2 of 3, without mx1"`)
	})
	servers[1].Close()
	eventually(t, "the last one knows that it is alone", func() bool { return servers[2].Status().Leader == "" })
	if err := put(kv, "k", "one"); err == nil {
		t.Error("a server without a quorum has taken a write")
	}
	if st := servers[2].Status(); !strings.Contains(st.Problem(), "servers connected: 1 of 3; they have no leader") {
		t.Errorf("status %+v", st)
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

// wanted is what the log says of a server with other credentials.
const wanted = "another server has other credentials"

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
	eventually(t, "it is refused and knows", func() bool { return strings.Contains(strangers.String(), wanted) })
	eventually(t, "the others know", func() bool { return strings.Contains(log.String(), wanted) })
	if st := stranger.Status(); st.Connected != 1 || st.Leader != "" || !strings.Contains(strangers.String(), "copy "+o.Credentials+" from a server that works to the one that does not") {
		t.Errorf("status %+v", st)
	}
	for _, s := range servers {
		joined(t, s, 3)
		if problem := s.Status().Problem(); problem != "" {
			t.Errorf("the stranger is a problem of %s: %q", s.o.Name, problem)
		}
	}
	if strings.Contains(log.String()+strangers.String(), token) {
		t.Error("the log has a token")
	}
}

// TestRouteStranger has NATS servers of somebody else: one connects to ours, and ours connect to
// another, which has the address of a server that is down. Neither becomes a server of the
// cluster, and neither hears anything.
func TestRouteStranger(t *testing.T) {
	all := options(t, 3)
	ca := newAuthority(t)
	cert, key := ca.pair(time.Now().Add(-time.Hour))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	ours := []*Server{start(t, all[0]), start(t, all[1])}
	for name, change := range map[string]func(*server.ClusterOpts){
		"without credentials": func(*server.ClusterOpts) {},
		"with a password":     func(o *server.ClusterOpts) { o.Username, o.Password = "spamgate", token },
		"with TLS": func(o *server.ClusterOpts) {
			o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
		},
	} {
		for _, place := range []string{all[2].Cluster, freeAddr(t)} {
			host, port, err := hostPort(place)
			if err != nil {
				t.Fatal(err)
			}
			o := &server.Options{
				ServerName: "stranger", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true,
				Cluster: server.ClusterOpts{Name: clusterName, Host: host, Port: port}, Routes: []*url.URL{routeTo(all[0].Cluster), routeTo(all[1].Cluster)},
			}
			change(&o.Cluster)
			n, err := server.NewServer(o)
			if err != nil {
				t.Fatal(err)
			}
			var log logged
			n.SetLoggerV2(newOutput(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))), true, true, false)
			n.Start()
			eventually(t, name+": it was tried at "+place, func() bool {
				return strings.Count(log.String(), "Router connection closed") > 3 || strings.Count(log.String(), "handshake error") > 3
			})
			for _, s := range append([]*server.Server{n}, ours[0].nats, ours[1].nats) {
				for _, r := range routes(t, s) {
					if r == "stranger" || s == n {
						t.Errorf("%s at %s: a route to %s", name, place, r)
					}
				}
			}
			shutdown(n)
		}
	}
	start(t, all[2])
	for _, s := range ours {
		joined(t, s, 3)
	}
}

func routes(t testing.TB, s *server.Server) (names []string) {
	t.Helper()
	all, err := s.Routez(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Routes {
		names = append(names, r.RemoteName)
	}
	return names
}

// TestFirstStart starts two servers of three that have never met the third: they elect no leader
// before it is there. Later two are enough.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	all := options(t, 3)
	first := []*Server{start(t, all[0]), start(t, all[1])}
	for _, s := range first {
		eventually(t, "two have met", func() bool { return s.Status().Connected == 2 })
	}
	time.Sleep(2 * maxElectionTimeout)
	for _, s := range first {
		if st := s.Status(); st.Leader != "" || !strings.Contains(st.Problem(), "servers connected: 2 of 3; they have no leader") {
			t.Errorf("status %+v", st)
		}
	}
	third := start(t, all[2])
	for _, s := range append(first, third) {
		joined(t, s, 3)
		eventually(t, s.o.Name+" has voted", func() bool { return s.nats.JetStreamIsCurrent() })
	}
	third.Close()
	for _, s := range first {
		s.Close()
	}
	for i := range first {
		first[i] = start(t, all[i])
	}
	for _, s := range first {
		joined(t, s, 2)
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

// TestUsualOutput has lines of servers that catch up, of strangers, and of what is wrong.
func TestUsualOutput(t *testing.T) {
	for _, c := range []struct {
		text   string
		logged bool
	}{
		{"Catchup for stream '$G > KV_spamgate-members' stalled", false},
		{"Catchup for stream '$G > KV_spamgate-lists' errored, will retry: catchup stalled", false},
		{"JetStream is not current with the meta leader", false},
		{"RAFT [yrzKKRBu - S-R3F-6LCvdyxs] Got an error loading 27 index: no message found", false},
		{"Catchup for stream '$G > KV_spamgate-lists' errored, account resources exceeded: insufficient resources", true},
		{"JetStream cluster stream '$G > KV_spamgate-lists' has NO quorum, stalled", true},
		{"RAFT [yrzKKRBu - S-R3F-6LCvdyxs] Critical write error: no space left on device", true},
		{"192.0.2.9:4711 - cid:5 - TLS handshake error: EOF", false},
		{"192.0.2.9:4711 - cid:5 - TLS handshake error: read tcp 192.0.2.1:4222->192.0.2.9:4711: read: connection reset by peer", false},
		{`192.0.2.9:4711 - cid:5 - authentication error - Token "[REDACTED]"`, true},
		{"192.0.2.9:4711 - cid:5 - TLS handshake error: remote error: tls: bad certificate", true},
		{"192.0.2.9:4711 - rid:5 - TLS route handshake error: tls: bad certificate", true},
		{"192.0.2.9:4711 - cid:5 - maximum connections exceeded", true},
	} {
		var log logged
		o := newOutput(log.logger())
		o.Warnf("%s", c.text)
		if (log.String() != "") != c.logged {
			t.Errorf("%s: the log has %q", c.text, &log)
		}
	}
}
