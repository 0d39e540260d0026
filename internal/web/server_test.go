package web

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"spamgate/internal/socket"
)

// tellingListener tells of each connection that it has accepted.
type tellingListener struct {
	net.Listener
	accepted chan struct{}
}

func (l tellingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- struct{}{}
	}
	return c, err
}

// pages are Pages of a function.
type pages func(w http.ResponseWriter, r *http.Request)

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p(w, r) }
func (p pages) Close()                                           {}

// serve serves pages on loopback, until the end of the test, and returns a function that connects.
func serve(t *testing.T, o Options) (*Server, func() *client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{}, 1)
	o.Open, o.Log = &socket.OpenDoor{Listener: tellingListener{l, accepted}}, slog.New(slog.DiscardHandler)
	s := New(o)
	s.Serve()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, func() *client {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second)) // one that waits for ever fails
		<-accepted
		return &client{c, bufio.NewReader(c)}
	}
}

// client is a connection to a server.
type client struct {
	net.Conn
	from *bufio.Reader
}

func (c *client) ask(t *testing.T, path, host string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host); err != nil {
		t.Fatal(err)
	}
}

func (c *client) answer() (*http.Response, error) {
	response, err := http.ReadResponse(c.from, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	return response, err
}

// TestRetire has a client connect in time and ask late.
func TestRetire(t *testing.T) {
	s, dial := serve(t, Options{Most: 4, Pages: pages(func(http.ResponseWriter, *http.Request) {})})
	c := dial()
	if err := s.Retire(); err != nil {
		t.Error(err)
	}
	c.ask(t, "/metrics", "gate")
	response, err := c.answer()
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("%s, closed after it: %v", response.Status, response.Close)
	}
}

// TestOldestIdle fills a server with idle connections, some of which ask from time to time, and
// with requests that take long: all get in, and the oldest idle one goes each time.
func TestOldestIdle(t *testing.T) {
	const most = 16
	began, end := make(chan bool), make(chan bool)
	_, dial := serve(t, Options{Most: most, Pages: pages(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			began <- true
			<-end
		case "/wait":
			defer Idle(r)()
			began <- true
			<-end
		}
	})})
	long := func(path string) *client {
		c := dial()
		c.ask(t, path, "gate")
		<-began
		return c
	}
	wantClosed := func(what string, c *client) {
		t.Helper()
		if _, err := c.from.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(what + " is open")
		}
	}
	wantAnswer := func(what string, c *client) {
		t.Helper()
		if _, err := c.answer(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	busy := []*client{long("/long"), long("/long")}
	waiting := long("/wait")
	var idle []*client
	for range most - len(busy) - 1 {
		idle = append(idle, dial())
	}
	for range 2 { // of those that are let in
		c := dial()
		c.ask(t, "/", "gate")
		wantAnswer("one more", c)
	}
	wantClosed("the oldest, which waits", waiting)
	wantClosed("the oldest idle one", idle[0])
	idle[1].ask(t, "/", "gate")
	wantAnswer("the second idle one", idle[1])

	// Most are busy: the idle ones that come now are not closed for each other.
	for range most {
		busy = append(busy, long("/long"))
	}
	wantClosed("the oldest busy one", busy[0])
	c := dial()
	dial()
	c.ask(t, "/", "gate")
	wantAnswer("among busy ones", c)
	close(end)
	wantAnswer("the newest busy one", busy[len(busy)-1])
}

// TestForeignNames asks under many names.
func TestForeignNames(t *testing.T) {
	ours := []string{"mx.example.org", "127.0.0.1:9025", "lists.example.net:8443", "", "gate.customer.github.io"}
	_, dial := serve(t, Options{Most: 4, Names: func() []string { return ours }, Pages: pages(func(http.ResponseWriter, *http.Request) {})})
	c := dial()
	for host, want := range map[string]int{
		"": http.StatusOK, "127.0.0.1:9025": http.StatusOK, "192.0.2.7": http.StatusOK, "[::1]:9025": http.StatusOK, "[fe80::1%25eth0]": http.StatusOK,
		"localhost:9025": http.StatusOK, "gate": http.StatusOK, "box": http.StatusOK, "spamgate_metrics": http.StatusOK, "spamgate:9025": http.StatusOK,
		"gate.internal": http.StatusOK, "gate.local.": http.StatusOK, "gate.lan": http.StatusOK, "gate.home.arpa": http.StatusOK,
		"gate.mail.svc.cluster.local:9025": http.StatusOK, "gate.mail.svc": http.StatusOK, "gate.service.consul": http.StatusOK,
		"host.docker.internal": http.StatusOK, "MX.example.org": http.StatusOK, "mx.example.org.:9025": http.StatusOK,
		"prometheus.int.example.org": http.StatusOK, "example.org": http.StatusOK, "mirror.example.net": http.StatusOK,
		"gate.customer.github.io": http.StatusOK,

		"evil.example.com": http.StatusMisdirectedRequest, "evil.example.com:9025": http.StatusMisdirectedRequest,
		"mx.example.org.evil.com": http.StatusMisdirectedRequest, "notexample.org": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.com": http.StatusMisdirectedRequest, "localhost.evil.com": http.StatusMisdirectedRequest, "gate.lan.evil.co.uk": http.StatusMisdirectedRequest,
		"co.uk": http.StatusMisdirectedRequest, "evil.ck": http.StatusMisdirectedRequest, "a.evil.ck": http.StatusMisdirectedRequest,
		"evil.github.io": http.StatusMisdirectedRequest,
	} {
		c.ask(t, "/", host)
		response, err := c.answer()
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("%q: %s, want %d", host, response.Status, want)
		}
	}
}
