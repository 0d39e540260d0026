package gate

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
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

// TestMetricsRetire has a client connect in time and ask late.
func TestMetricsRetire(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{}, 1)
	s := serveMetrics(tellingListener{l, accepted}, "", newMetrics().handler(), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-accepted
	if err := s.retire(); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: gate\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("%s, closed after it: %v", response.Status, response.Close)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
