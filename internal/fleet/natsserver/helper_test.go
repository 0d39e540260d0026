package natsserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const token = "a-shared-token"

// logged is a log that tests read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// secret returns a file with credentials.
func secret(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// options returns the options of n servers that belong together, or of one that is alone.
func options(t testing.TB, n int) []Options {
	t.Helper()
	file := secret(t, token)
	all := make([]Options, n)
	var routes []string
	for i := range all {
		all[i] = Options{
			Name: fmt.Sprintf("mx%d", i+1), Listen: freeAddr(t), Dir: filepath.Join(t.TempDir(), "store"),
			Credentials: file, check: 20 * time.Millisecond,
		}
		if n > 1 {
			all[i].Cluster = freeAddr(t)
			routes = append(routes, "nats://"+all[i].Cluster)
		}
	}
	for i := range all {
		all[i].Routes = routes
	}
	return all
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect returns a client of some servers.
func connect(t testing.TB, with nats.Option, all ...Options) *nats.Conn {
	t.Helper()
	var urls []string
	for _, o := range all {
		urls = append(urls, "nats://"+o.Listen)
	}
	nc, err := nats.Connect(strings.Join(urls, ","), with, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// bucket opens a bucket on as many servers, and makes it if it is missing.
func bucket(t testing.TB, nc *nats.Conn, name string, replicas int) (kv jetstream.KeyValue) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bucket is there", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Replicas: replicas, History: 5})
		return err == nil
	})
	return kv
}

func put(kv jetstream.KeyValue, key, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := kv.Put(ctx, key, []byte(value))
	return err
}

func get(kv jetstream.KeyValue, key string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	e, err := kv.Get(ctx, key)
	if err != nil {
		return err.Error()
	}
	return string(e.Value())
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// known are goroutines that a NATS server leaves if it is stopped before it has met another one:
// the run method of its raft type returns without stopping its log.
var known = []string{"flushStreamStateLoop", "ats.Register"}

// ours returns the stacks of goroutines that run code of NATS.
func ours() string {
	var b bytes.Buffer
	pprof.Lookup("goroutine").WriteTo(&b, 1)
	var found []string
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		isKnown := slices.ContainsFunc(known, func(name string) bool { return strings.Contains(stack, name) })
		if strings.Contains(stack, "nats-io") && !isKnown {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
