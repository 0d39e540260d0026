package socket

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestHears: which connections would come back to the gate itself.
func TestHears(t *testing.T) {
	for _, test := range []struct {
		listen, to string
		want       bool
	}{
		{":25", "127.0.0.1:25", true},
		{":25", "[::1]:25", true},
		{"[::]:25", "127.0.0.1:25", true},
		{"0.0.0.0:25", "127.0.0.1:25", true},
		{"0.0.0.0:25", "[::1]:25", false},
		{"127.0.0.1:25", "127.0.0.1:25", true},
		{"127.0.0.1:25", "127.0.0.2:25", false},
		{"127.0.0.1:25", "0.0.0.0:25", true},
		{"[::1]:25", "[::]:25", true},
		{"192.0.2.1:25", "0.0.0.0:25", false},
		{":25", "127.0.0.1:26", false},
	} {
		addr, err := net.ResolveTCPAddr("tcp", test.listen)
		if err != nil {
			t.Fatal(err)
		}
		to, err := net.ResolveTCPAddr("tcp", test.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := (BindAddr{Addr: addr}).Hears(to); got != test.want {
			t.Errorf("%s from %s: %v", test.to, test.listen, got)
		}
	}
}

// TestPassedSocketsAreTaken: systemd's sockets must not be left to wait.
func TestPassedSocketsAreTaken(t *testing.T) {
	with := func(addr string) *config.Config {
		return &config.Config{Listeners: []config.Listener{{Endpoint: config.Endpoint{Addr: config.Addresses{addr}}}}}
	}
	t.Setenv("LISTEN_FDS", "2")
	t.Setenv("LISTEN_PID", "1")
	if err := CheckPassed(with(":25")); err != nil {
		t.Errorf("another process's: %v", err)
	}
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	if err := CheckPassed(with(config.Systemd)); err != nil {
		t.Error(err)
	}
	if err := CheckPassed(with(":25")); err == nil || !strings.Contains(err.Error(), `2 sockets that no listener takes: write addr = "systemd"`) {
		t.Errorf("not taken: %v", err)
	}
}

// TestCanBind compares what a socket can be bound to with the system's list of addresses.
func TestCanBind(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() && !canBind(n.IP) { // those need a zone
			t.Errorf("%s is an address of this machine, but not to canBind", n.IP)
		}
	}
	for _, other := range []string{"192.0.2.1", "203.0.113.77", "2001:db8::1"} {
		if ip := net.ParseIP(other); canBind(ip) != IsLocal(ip) {
			t.Errorf("canBind(%s) = %t, IsLocal says otherwise", ip, canBind(ip))
		}
	}
}
