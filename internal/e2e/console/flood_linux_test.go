package console

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestFlood opens many connections to the console that send a part of a request each, as slowly
// as a slow loris. The gate holds a bounded number of them, mail passes meanwhile, and
// afterwards the console answers. SPAMGATE_E2E_FULL=1: 10,000 connections.
func TestFlood(t *testing.T) {
	t.Parallel()
	connections := 600
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		connections = 10_000
	}
	s := startSite(t, harness.Setup{})
	addr := strings.TrimPrefix(s.url, "http://")
	before := s.descriptors(t)
	var open []net.Conn
	for range connections {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			break // the system's queue is full
		}
		defer c.Close()
		open = append(open, c)
		if _, err := fmt.Fprintf(c, "GET /login HTTP/1.1\r\nHost: %s\r\nX-Slow: ", addr); err != nil {
			t.Fatal(err)
		}
	}
	s.passes(t, "friend@friend.example", ann)
	if held := s.descriptors(t) - before; held > mostConnections+20 {
		t.Errorf("the gate has %d descriptors more", held)
	}
	t.Logf("%d connections are open", len(open))
	for _, c := range open {
		c.Close()
	}
	client := &http.Client{Timeout: harness.WorkTimeout}
	response, err := client.Get(s.url + "/login")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("after the flood: %s, %v", response.Status, err)
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
