package fleet

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
)

// TestLostAnswer loses the answer to a question, with the connection or without it: the gate does
// not wait long for it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		edit  time.Duration
		close bool
	}{
		{"with the connection", 10 * time.Minute, true},
		{"alone", quick.edit, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := fleettest.Start(t, nil)
			r := newRelay(t, s, "DIRECT.GET.KV_"+bucketLists+".$KV."+bucketLists+".list.blocked ", test.close)
			a, b := newGate(t, "a", s, nil), newGate(t, "b", s, func(o *Options) {
				o.Servers = []string{"nats://" + r.Addr().String()}
				o.times.edit = test.edit
			})
			a.write("blocked", "one@example.net\n")
			a.start()
			b.start()
			equal(t, "blocked", a, b)
			r.lose()
			a.mustAdd("blocked", "two@example.net")
			has(t, "blocked", "one@example.net\ntwo@example.net\n", b)
		})
	}
}

// relay passes connections on to a server.
type relay struct {
	net.Listener
	to, question string // what a question has that gets lost
	close        bool   // the connection ends with it
	losing       atomic.Bool
	lost         chan struct{}
}

func newRelay(t *testing.T, s *fleettest.Server, question string, ends bool) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: strings.TrimPrefix(s.URL(), "nats://"), question: question, close: ends, lost: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.pass(conn) })
		}
	})
	t.Cleanup(func() { // after the gates have closed their connections
		_ = l.Close()
		wg.Wait()
	})
	return r
}

// lose loses the next question, and waits for it.
func (r *relay) lose() {
	r.losing.Store(true)
	<-r.lost
}

// pass passes a connection on.
func (r *relay) pass(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(conn, server)
		_ = conn.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte(r.question)) && r.losing.CompareAndSwap(true, false) {
			close(r.lost)
			if r.close {
				return
			}
			continue
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
