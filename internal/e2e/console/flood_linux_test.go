package console

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestFlood opens many connections to the console that send a part of a request each, as slowly
// as a slow loris. The gate holds a bounded number of them; meanwhile mail passes, and the
// console answers. SPAMGATE_E2E_FULL=1: 10,000 attempts.
func TestFlood(t *testing.T) {
	t.Parallel()
	attempts := 600
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		attempts = 10_000
	}
	s := startSite(t, harness.Setup{})
	addr := strings.TrimPrefix(s.url, "http://")
	before := s.descriptors(t)
	var open connections
	var clients sync.WaitGroup
	for range 100 {
		clients.Go(func() {
			for range attempts / 100 {
				open.add(addr)
			}
		})
	}
	clients.Wait()
	defer open.close()
	s.passes(t, "friend@friend.example", ann)
	if held := s.descriptors(t) - before; held > mostConnections+20 {
		t.Errorf("the gate has %d descriptors more", held)
	}
	t.Logf("%d of %d connections were taken, by the gate or the system's queue before it", len(open.all), attempts)
	if len(open.all) < mostConnections {
		t.Errorf("only %d connections", len(open.all))
	}
	ask(t, s.api, http.StatusOK, "GET", "/api/v1/lists", "", nil)
	client := &http.Client{Timeout: harness.WorkTimeout}
	response, err := client.Get(s.url + "/login")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("among the flood: %s, %v", response.Status, err)
	}
}

// connections are connections of clients.
type connections struct {
	mu  sync.Mutex
	all []net.Conn
}

// add opens a connection and sends a part of a request, unless the system's queue is full.
func (c *connections) add(addr string) {
	conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
	if err != nil {
		return
	}
	fmt.Fprintf(conn, "GET /login HTTP/1.1\r\nHost: %s\r\nX-Slow: ", addr) // the gate may have closed it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, conn)
}

func (c *connections) close() {
	for _, conn := range c.all {
		conn.Close()
	}
}

// mostConnections is how many connections the console serves at a time.
const mostConnections = 256

// descriptors returns how many files the gate has open.
func (s *site) descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
