package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/e2e/harness"
)

// broker is a server of a fleet in a process of its own.
type broker interface {
	Start()
	Kill()
	store() string // the directory of its store
	address() string
}

// natsBroker is a nats-server.
type natsBroker struct{ *harness.NATS }

func (n natsBroker) store() string   { return n.Store }
func (n natsBroker) address() string { return n.Addr }

// ownBroker is spamgate-fleetd.
type ownBroker struct {
	t    testing.TB
	addr string
	dir  string // with its configuration
	out  *harness.Output
	cmd  *exec.Cmd
}

func (o *ownBroker) store() string   { return filepath.Join(o.dir, "state", "fleet", "server") }
func (o *ownBroker) address() string { return o.addr }

func (o *ownBroker) Start() {
	o.t.Helper()
	o.out = harness.NewOutput(o.t, "spamgate-fleetd")
	o.cmd = exec.Command(harness.FleetdBinary(o.t))
	o.cmd.Dir, o.cmd.Stdout, o.cmd.Stderr = o.dir, o.out, o.out
	if err := o.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.out.Wait("that it is ready", func(line string) bool { return strings.HasPrefix(line, "ready") })
}

func (o *ownBroker) Kill() {
	if o.cmd != nil {
		o.cmd.Process.Kill()
		o.cmd.Wait() // the exit code tells nothing
		o.cmd = nil
	}
}

// cluster is the servers of a fleet.
type cluster struct {
	testing.TB
	brokers []broker
	routes  map[[2]int]*link // the way of one server to another, if links are wanted
	client  *nats.Conn
}

// startBrokers starts n nats-servers that belong together. Between them are links.
func startBrokers(t testing.TB, n int) *cluster {
	t.Helper()
	c := &cluster{TB: t, routes: map[[2]int]*link{}}
	if n == 1 {
		return c.start(natsBroker{harness.NewNATS(t, "")})
	}
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = harness.FreeAddr(t)
	}
	var brokers []broker
	for i, own := range addrs {
		// JetStream counts the routes to know how many servers there are, so each has one to
		// itself. Nobody is to connect past the links: what is advertised leads nowhere.
		routes := []string{"nats://" + own}
		for j, other := range addrs {
			if i != j {
				c.routes[[2]int{i, j}] = newLink(t, other)
				routes = append(routes, "nats://"+c.routes[[2]int{i, j}].addr)
			}
		}
		brokers = append(brokers, natsBroker{harness.NewNATS(t, fmt.Sprintf(
			"server_name: s%d\ncluster { name: fleet, listen: %q, advertise: %q, no_advertise: true, routes: [\"%s\"] }\n",
			i, own, harness.FreeAddr(t), strings.Join(routes, `", "`)))})
	}
	return c.start(brokers...)
}

// startOwnBrokers starts three spamgate-fleetd.
func startOwnBrokers(t testing.TB) *cluster {
	t.Helper()
	var clusters, listens []string
	for range 3 {
		clusters, listens = append(clusters, harness.FreeAddr(t)), append(listens, harness.FreeAddr(t))
	}
	var brokers []broker
	for i := range 3 {
		o := &ownBroker{t: t, addr: listens[i], dir: t.TempDir()}
		harness.WriteFile(t, filepath.Join(o.dir, "config.toml"), fmt.Sprintf(
			"[state]\ndir = \"state\"\n[fleet]\nname = \"s%d\"\n[fleet.server]\nlisten = %q\ncluster = %q\nroutes = [\"nats://%s\"]\n",
			i, listens[i], clusters[i], strings.Join(clusters, `", "nats://`)))
		t.Cleanup(o.Kill)
		brokers = append(brokers, o)
	}
	return (&cluster{TB: t}).start(brokers...)
}

// start starts servers, and connects a client of the test.
func (c *cluster) start(brokers ...broker) *cluster {
	c.Helper()
	c.brokers = brokers
	for _, b := range brokers {
		b.Start()
	}
	var err error
	c.client, err = nats.Connect(strings.Join(c.urls(), ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(c.client.Close)
	return c
}

// urls returns the URLs of servers, or of all.
func (c *cluster) urls(which ...int) (urls []string) {
	for i, b := range c.brokers {
		if len(which) == 0 {
			urls = append(urls, "nats://"+b.address())
		}
		for _, w := range which {
			if w == i {
				urls = append(urls, "nats://"+b.address())
			}
		}
	}
	return urls
}

func (c *cluster) jetstream() jetstream.JetStream {
	c.Helper()
	js, err := jetstream.New(c.client)
	if err != nil {
		c.Fatal(err)
	}
	return js
}

// version is what the fleet or a gate has of a list.
type version struct {
	Sequence uint64 `json:"sequence"`
	SHA256   string `json:"sha256"`
}

// current returns the fleet's version of the list "shared", if it is known now.
func (c *cluster) current() (v version, ok bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	js := c.jetstream()
	kv, err := js.KeyValue(ctx, "spamgate-lists")
	if err != nil {
		return v, false
	}
	entry, err := kv.Get(ctx, "list.shared")
	return v, err == nil && json.Unmarshal(entry.Value(), &v) == nil
}

// streams are those of the fleet's buckets.
var streams = []string{"KV_spamgate-lists", "KV_spamgate-state", "OBJ_spamgate-content", "KV_spamgate-members", "KV_spamgate-leases"}

// whole reports whether all servers have all that is in the streams for lists.
func (c *cluster) whole() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, name := range streams[:3] {
		s, err := c.jetstream().Stream(ctx, name)
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		info := s.CachedInfo()
		if info.Config.Replicas < len(c.brokers) || info.Cluster.Leader == "" || len(info.Cluster.Replicas) < len(c.brokers)-1 {
			return false
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return false
			}
		}
	}
	return true
}

// consumers returns how many consumers the streams have, or -1 if that is not known now.
func (c *cluster) consumers() (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, name := range streams {
		s, err := c.jetstream().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) { // those in memory are made again when they are needed
			continue
		}
		if err != nil {
			return -1
		}
		names := s.ConsumerNames(ctx)
		for range names.Name() {
			n++
		}
		if names.Err() != nil {
			return -1
		}
	}
	return n
}

// wipe deletes the store of a server that does not run.
func (c *cluster) wipe(b broker) {
	c.Helper()
	if err := os.RemoveAll(b.store()); err != nil {
		c.Fatal(err)
	}
}
