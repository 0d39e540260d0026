package rhsbl

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"

	"spamgate/blocklist/store"
)

// TestMain rules out that a test meets a false positive.
func TestMain(m *testing.M) {
	parentsWidth = 32
	m.Run()
}

// A testList is a list and its lines.
type testList struct {
	store.List
	lines string
}

// openStore opens a Store of lists in a directory, where their files have their names.
func openStore(t testing.TB, lists ...testList) (s *store.Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	c := store.Config{Probes: -1, Debounce: time.Millisecond}
	for _, l := range lists {
		l.Paths = []string{filepath.Join(dir, l.Name)}
		writeFile(t, l.Paths[0], l.lines)
		c.Lists = append(c.Lists, l.List)
	}
	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var allLocal = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// zonesOf are settings with both zones.
func zonesOf() Settings {
	return Settings{
		Zone: "bl.test", HashedZone: "hash.test", Hostname: "gate.test",
		TTL: time.Minute, AllowClients: allLocal,
	}
}

// newServer returns a Server that has indexed the lists.
func newServer(t testing.TB, lists Store, settings Settings) *Server {
	t.Helper()
	s, err := New(Config{Name: "dns", Store: lists}, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(t.Context()) })
	s.waitIndexed(t)
	return s
}

// waitIndexed waits for the index of the present Set and settings.
func (s *Server) waitIndexed(t testing.TB) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if x := s.index.Load(); x != nil && x.generation == s.config.Store.Set().Generation() && x.state == s.state.Load() {
			return
		}
		if time.Now().After(late) {
			t.Fatal("the lists are not indexed")
		}
	}
}

// serve serves over UDP and TCP at one address, until the test ends.
func serve(t testing.TB, s *Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- s.Serve(l) }()
	go func() { done <- s.ServePacket(c) }()
	t.Cleanup(func() {
		s.Shutdown(t.Context())
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return l.Addr().String()
}

// newQuestion returns a question for a name.
func newQuestion(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	m.RecursionDesired = true
	return m
}

// local is a client on this machine.
var local = netip.MustParseAddr("127.0.0.1")

// ask returns the answer to a question over UDP, without a socket.
func (s *Server) ask(t testing.TB, m *dns.Msg) *dns.Msg {
	t.Helper()
	question, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	packet := s.answer(question, local, true, nil)
	if packet == nil {
		t.Fatalf("no answer to %v", m)
	}
	r := new(dns.Msg)
	if err := r.Unpack(packet); err != nil {
		t.Fatalf("%v: %v", m, err)
	}
	return r
}
