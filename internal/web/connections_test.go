package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestConnections fills a server with connections that send nothing. A client with an account
// keeps its answer, others are let in, and the strangers' oldest connections end.
func TestConnections(t *testing.T) {
	const most = 4
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := newConnections(most)
	began, end := make(chan bool), make(chan bool)
	server := &http.Server{ConnContext: conns.context, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			defer Hold(r)()
			began <- true
			<-end
		}
		_, _ = io.WriteString(w, "yes") // the client may be gone
	})}
	go func() { _ = server.Serve(&listener{l, conns}) }() // until Close
	defer server.Close()

	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	ask := func(c net.Conn, path string) { fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path) }
	answer := func(c net.Conn) error {
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	var held []net.Conn
	holdOne := func() {
		c := dial()
		ask(c, "/held")
		<-began
		held = append(held, c)
	}
	holdOne()
	for range 10 * most {
		dial() // stays open and says nothing
	}
	c := dial()
	ask(c, "/")
	if err := answer(c); err != nil {
		t.Errorf("among silent clients: %v", err)
	}
	for range most - 1 {
		holdOne()
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection that was idle is open")
	}
	c = dial()
	ask(c, "/")
	if err := answer(c); err == nil {
		t.Error("there are more connections than the most")
	}
	close(end)
	for i, c := range held {
		if err := answer(c); err != nil {
			t.Errorf("held connection %d: %v", i, err)
		}
	}
	c = dial()
	ask(c, "/")
	if err := answer(c); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	conns.mu.Lock()
	defer conns.mu.Unlock()
	if len(conns.open) > most {
		t.Errorf("%d are open", len(conns.open))
	}
}
