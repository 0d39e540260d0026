package fleet

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// relay passes connections on to a server, and loses what it is told to.
type relay struct {
	net.Listener
	to string

	mu     sync.Mutex
	losing *losing // nil: nothing
	silent bool    // nothing passes
	conns  map[net.Conn]bool
}

// losing says what gets lost: a question, once, or messages of the server until mend.
type losing struct {
	question string // what a gate sends has that
	delivers bool   // it arrives nevertheless
	cut      bool   // the connection ends with it
	mute     bool   // nothing passes after it, until mend

	messages string // begins the subjects of what the server sends

	done chan struct{}
}

func newRelay(t *testing.T, s *fleettest.Server) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: strings.TrimPrefix(s.URL(), "nats://"), conns: map[net.Conn]bool{}}
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
		r.mend()
		wg.Wait()
	})
	return r
}

// servers returns what a gate has in Options.Servers to use the relay.
func (r *relay) servers() []string { return []string{"nats://" + r.Addr().String()} }

// lose says what gets lost next. The channel is closed when it was.
func (r *relay) lose(what losing) <-chan struct{} {
	what.done = make(chan struct{})
	r.mu.Lock()
	r.losing = &what
	r.mu.Unlock()
	return what.done
}

// mend ends the connections on which nothing passes any more, and lets others pass.
func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent, r.losing = false, nil
	for conn := range r.conns {
		_ = conn.Close()
	}
	clear(r.conns)
}

// pass passes a connection on.
func (r *relay) pass(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	r.conns[conn] = true
	r.mu.Unlock()
	go func() {
		defer conn.Close()
		r.copy(conn, server, r.answered)
	}()
	r.copy(server, conn, r.asked)
}

// copy copies what is not lost, until that ends the connection.
func (r *relay) copy(to, from net.Conn, passes func([]byte) (passed []byte, ends bool)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		b, ends := passes(buf[:n])
		if _, err := to.Write(b); err != nil || ends {
			return
		}
	}
}

// asked returns what of a gate's bytes passes.
func (r *relay) asked(b []byte) (passed []byte, ends bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.losing
	if r.silent {
		return nil, false
	}
	if w == nil || w.question == "" || !bytes.Contains(b, []byte(w.question)) {
		return b, false
	}
	r.silent, r.losing = w.mute, nil
	close(w.done)
	if w.delivers {
		return b, w.cut
	}
	return nil, w.cut
}

// answered returns what of a server's bytes passes.
func (r *relay) answered(b []byte) (passed []byte, ends bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.losing
	if r.silent {
		return nil, false
	}
	if w == nil || w.messages == "" {
		return b, false
	}
	for rest := b; ; {
		i := bytes.Index(rest, []byte("MSG "+w.messages))
		if i < 0 {
			return b, false
		}
		rest = rest[i+len("MSG "):]
		// A gate ignores a message for a subscription that it does not have.
		number := rest[bytes.IndexByte(rest, ' ')+1:]
		for j := 0; j < len(number) && number[j] != ' '; j++ {
			number[j] = '0'
		}
		select {
		case <-w.done:
		default:
			close(w.done)
		}
	}
}
