package wire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"spamgate/smtpfilter/wire"
)

// scarce is a listener that lacks file descriptors for a while.
type scarce struct {
	net.Listener
	failures atomic.Int32
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestAcceptWaits lets accepting fail a few times.
func TestAcceptWaits(t *testing.T) {
	tcp := &scarce{Listener: listen(t)}
	tcp.failures.Store(3)
	var told int
	l := wire.NewListener(tcp, wire.Config{AcceptFailed: func(err error) {
		if errors.Is(err, syscall.EMFILE) {
			told++
		}
	}})
	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil || told != 3 {
		t.Fatalf("Accept: %v; told %d times, want 3", err, told)
	}
	c.Close()
}

// TestAcceptCloses ends the waits of a listener that can accept no more.
func TestAcceptCloses(t *testing.T) {
	tcp := &scarce{Listener: listen(t)}
	tcp.failures.Store(1 << 30)
	failed := make(chan struct{}, 1)
	l := wire.NewListener(tcp, wire.Config{AcceptFailed: func(error) {
		select {
		case failed <- struct{}{}:
		default:
		}
	}})
	done := make(chan error)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	<-failed
	l.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept afterwards: %v", err)
	}
}

// TestSetConfig changes what new connections find, and nothing for those that
// are open.
func TestSetConfig(t *testing.T) {
	g := newTestGate(t)
	g.start(t)
	old := g.dial(t)
	play(t, old, "S 220 *", "C EHLO client.example", "E PIPELINING,CHUNKING,8BITMIME,ENHANCEDSTATUSCODES,SIZE")
	g.cfg.MaxMessageBytes = 7
	g.listener.SetConfig(g.cfg)
	young := g.dial(t)
	play(t, young, "S 220 *", "C EHLO client.example", "E PIPELINING,CHUNKING,8BITMIME,ENHANCEDSTATUSCODES,SIZE 7")
	play(t, old, "C EHLO client.example", "E PIPELINING,CHUNKING,8BITMIME,ENHANCEDSTATUSCODES,SIZE")
}

// TestDrainTLS drains under TLS: a transaction goes on, and its end is the
// connection's, which is closed in order.
func TestDrainTLS(t *testing.T) {
	g := newTestGate(t)
	g.mustSetUp(t, "tls implicit")
	g.start(t)
	d := g.dial(t)
	play(t, d, "TLS", "S 220 *", "C HELO client.example", "S 250 *", "C MAIL FROM:<a@example.com>", "S 250 *")
	g.listener.Close()
	<-g.served
	g.served = nil
	drained := make(chan struct{})
	go func() {
		g.listener.Drain(context.Background())
		close(drained)
	}()
	play(t, d, "C RCPT TO:<b@example.net>", "S 250 *", "C RSET", "S 250 *", "S 421 4.3.2 *", "S [close]")
	d.Conn.Close()
	<-drained
}

// telling is a listener that tells of a connection.
type telling struct {
	net.Listener
	accepted chan struct{}
}

func (l *telling) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- struct{}{}
	}
	return c, err
}

// TestDrainGreeting drains while greetings and PROXY headers are waited for.
func TestDrainGreeting(t *testing.T) {
	for _, tt := range []struct{ setUp, step string }{
		{"delay 1h", "S 421 4.3.2 *"},
		{"proxy 127.0.0.0/8", "S [close]"},
		{"tls implicit", "S [close]"},
	} {
		t.Run(tt.setUp, func(t *testing.T) {
			g := newTestGate(t)
			g.mustSetUp(t, tt.setUp)
			tcp := &telling{Listener: listen(t), accepted: make(chan struct{}, 1)}
			g.serve(t, tcp)
			d := g.dial(t)
			<-tcp.accepted
			stopped := make(chan struct{})
			go func() {
				g.stop(t)
				close(stopped)
			}()
			play(t, d, tt.step, "S [close]")
			d.Conn.Close()
			<-stopped
		})
	}
}

// late is a listener that gives a connection away once the client has said
// something.
type late struct{ net.Listener }

func (l late) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	for deadline := time.Now().Add(waitLimit); err == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if pending, _ := wire.Pending(c); pending {
			break
		}
	}
	return c, err
}

// TestEarlyWithoutDelay finds bytes that are there when the client is greeted.
func TestEarlyWithoutDelay(t *testing.T) {
	tcp := listen(t)
	g := newTestGate(t)
	g.cfg.RejectPregreet = true
	g.addr = tcp.Addr().String()
	d := g.dial(t)
	play(t, d, "C EHLO client.example")
	g.serve(t, late{tcp})
	play(t, d, "S 554 5.5.0 *", "S [close]")
	d.Conn.Close()
}
