package socket

import (
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestPassed(t *testing.T) {
	for _, c := range []struct {
		value string
		want  []passedFile
		err   string
	}{
		{value: "3=ready 4=[::]:25 5=systemd 6=127.0.0.1:0", want: []passedFile{
			{3, "ready"}, {4, "[::]:25"}, {5, "systemd"}, {6, "127.0.0.1:0"},
		}},
		{value: "3=ready", want: []passedFile{{3, "ready"}}},
		{value: "3=ready 4=[fe80::1%eth0]:25", want: []passedFile{{3, "ready"}, {4, "[fe80::1%eth0]:25"}}},
		{value: "3=ready 4=udp:127.0.0.1:53 5=unix:/run/spam%20gate/a=b 6=127.0.0.1:53", want: []passedFile{
			{3, "ready"}, {4, "udp:127.0.0.1:53"}, {5, "unix:/run/spam%20gate/a=b"}, {6, "127.0.0.1:53"},
		}},
		{value: "3=ready 4=udp:53", err: `"udp:53" is not an address`},
		{value: "3=ready 4=udp:", err: `"udp:" is not an address`},
		{value: "3=ready 4=unix:", err: `"unix:" is not an address`},
		{value: "3=ready 4=unix:%zz", err: `"unix:%zz" is not an address`},
		{value: "", err: `0 descriptors are called "ready", want one`},
		{value: "3=systemd", err: `0 descriptors are called "ready", want one`},
		{value: "3=ready 4=ready", err: `2 descriptors are called "ready", want one`},
		{value: "3=ready 3=systemd", err: "descriptor 3 is there twice"},
		{value: "2=ready", err: `"2=ready" is not a descriptor with an address`},
		{value: "-3=ready", err: `"-3=ready" is not a descriptor with an address`},
		{value: "3=", err: `"3=" is not a descriptor with an address`},
		{value: "ready", err: `"ready" is not a descriptor with an address`},
		{value: "99999999999=ready", err: `"99999999999=ready" is not a descriptor with an address`},
		{value: "3=ready 4=:25", err: `":25" is not an address`},
	} {
		files, err := parsePassed(c.value)
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: %v, want %s", c.value, err, c.err)
			}
		case err != nil || !reflect.DeepEqual(files, c.want):
			t.Errorf("%q: %v, %v; want %v", c.value, files, err, c.want)
		default:
			if got := FormatPassed(keysOf(files)); got != c.value {
				t.Errorf("%q was written as %q", c.value, got)
			}
		}
	}
}

func keysOf(files []passedFile) []string {
	var keys []string
	for _, f := range files {
		keys = append(keys, f.key)
	}
	return keys
}

func FuzzPassed(f *testing.F) {
	f.Add("3=ready 4=[::]:25 5=systemd")
	f.Add("4=127.0.0.1:0  3=ready")
	f.Add("3=ready 3=ready = 1= 4=x")
	f.Add("3=ready 4=udp:[::1]:53 5=unix:/run/a%20b")
	f.Fuzz(func(t *testing.T, value string) {
		files, err := parsePassed(value)
		if err != nil {
			return
		}
		again, err := parsePassed(FormatPassed(keysOf(files)))
		if err != nil || !reflect.DeepEqual(keysOf(again), keysOf(files)) {
			t.Errorf("%q: %v became %v, %v", value, files, again, err)
		}
	})
}

// TestSocketKey has addresses as they are configured, and as sockets have them.
func TestSocketKey(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{":25", "[::]:25"},
		{"[::]:25", "[::]:25"},
		{"0.0.0.0:25", "0.0.0.0:25"},
		{"[::ffff:0.0.0.0]:25", "0.0.0.0:25"},
		{"127.0.0.1:2525", "127.0.0.1:2525"},
		{"[::ffff:127.0.0.1]:2525", "127.0.0.1:2525"},
		{"127.0.0.1:0", "127.0.0.1:0"},
		{"[::1]:25", "[::1]:25"},
		{"[0:0:0:0:0:0:0:1]:25", "[::1]:25"},
		{"[2001:db8::1]:587", "[2001:db8::1]:587"},
		{"[fe80::1%eth0]:25", "[fe80::1%eth0]:25"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := SocketKey(addr); got != c.want {
			t.Errorf("%s: %s, want %s", c.addr, got, c.want)
		}
	}
}

// listenTCP opens a socket as the gate does, or skips the test where the machine
// has no such addresses.
func listenTCP(t *testing.T, addr string) *net.TCPListener {
	t.Helper()
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l, err := BindAddr{Addr: tcp}.Listen()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// TestInherited looks among inherited sockets for those that are wanted.
func TestInherited(t *testing.T) {
	loopback := listenTCP(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(loopback.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	passed := listenTCP(t, "127.0.0.1:0")
	for _, c := range []struct {
		name string
		key  string // of the socket loopback, which is there beside one of systemd's
		want string
		ok   bool
	}{
		{"the same address", "127.0.0.1:" + port, "127.0.0.1:" + port, true},
		{"any port again", "127.0.0.1:0", "127.0.0.1:0", true},
		{"the port that any port was", "127.0.0.1:0", "127.0.0.1:" + port, true},
		{"systemd's, now configured", "systemd", "127.0.0.1:" + port, true},
		{"another port", "127.0.0.1:" + port, "127.0.0.1:1", false},
		{"any port, now", "127.0.0.1:" + port, "127.0.0.1:0", false},
		{"every address", "127.0.0.1:" + port, ":" + port, false},
		{"every IPv4 address", "127.0.0.1:" + port, "0.0.0.0:" + port, false},
		{"every address is not every IPv4 one", "[::]:25", "0.0.0.0:25", false},
		{"every IPv4 address is not every one", "0.0.0.0:25", ":25", false},
		{"every address, written otherwise", "[::]:25", ":25", true},
		{"every address, written in full", "[::]:25", "[::]:25", true},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.want)
		if err != nil {
			t.Fatal(err)
		}
		in := &Inherited{sockets: []inheritedSocket{{"systemd", passed}, {c.key, loopback}}}
		l := in.Listener(addr)
		if (l == loopback) != c.ok || (l == nil) == c.ok {
			t.Errorf("%s: %v for %s", c.name, l, c.want)
		}
		if c.ok && in.Listener(addr) != nil {
			t.Errorf("%s: taken twice", c.name)
		}
	}

	in := &Inherited{sockets: []inheritedSocket{{"systemd", passed}, {"127.0.0.1:0", loopback}}}
	if got := in.systemd(); len(got) != 1 || got[0] != passed {
		t.Errorf("systemd's sockets: %v", got)
	}
	if err := in.CloseRest(); err != nil {
		t.Error(err)
	}
	if _, err := loopback.Accept(); err == nil {
		t.Error("a socket that nobody wanted is still open")
	}
	if _, err := passed.File(); err != nil {
		t.Errorf("a socket that was taken was closed: %v", err)
	}

	in = nil
	if in.Listener(&net.TCPAddr{Port: 25}) != nil || in.systemd() != nil || in.CloseRest() != nil || in.Ready() {
		t.Error("who has inherited nothing has something")
	}
}

// TestInheritRefused has values in the environment that no gate has left there.
func TestInheritRefused(t *testing.T) {
	for _, value := range []string{"nonsense", "3=127.0.0.1:25"} {
		t.Setenv(SocketsVariable, value)
		if _, err := Inherit(); err == nil || !strings.Contains(err.Error(), "nobody else should") {
			t.Errorf("%s: %v", value, err)
		}
		if _, ok := os.LookupEnv(SocketsVariable); ok {
			t.Errorf("%s: still in the environment", value)
		}
	}
}
