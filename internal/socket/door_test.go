package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/config"
	"spamgate/internal/unixsocket"
)

// openDoor opens a door and closes it after the test.
func openDoor(t *testing.T, d config.Door, in *Inherited) *OpenDoor {
	t.Helper()
	a, err := ResolveDoor(&config.Config{}, d, in)
	if err != nil {
		t.Fatal(err)
	}
	o, err := a.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// inherit returns copies of sockets, as a successor has them.
func inherit(t *testing.T, passed []Inheritable) *Inherited {
	t.Helper()
	in := &Inherited{}
	for _, p := range passed {
		f, err := p.File()
		if err != nil {
			t.Fatal(err)
		}
		copied, err := socketOf(p.Key, f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		in.sockets = append(in.sockets, inheritedSocket{p.Key, copied})
	}
	return in
}

// TestDoorHandedOver hands each sort of door over: a client of the first process's address
// reaches the second, whose sockets are copies, also after the first has closed its own.
func TestDoorHandedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space=and%41", "s")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]config.Door{
		"TCP":     {Table: config.TablePolicyService, Addr: "127.0.0.1:0"},
		"Unix":    {Table: config.TableMilter, Addr: "unix:" + path, SocketMode: "0660"},
		"TCP+UDP": {Table: config.TableDNSServer, Addr: "127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			first := openDoor(t, d, nil)
			in := inherit(t, first.Inheritable())
			second := openDoor(t, d, in)
			if len(in.sockets) != 0 || second.Addr() != first.Addr() {
				t.Fatalf("%v left; the address is %s, not %s", in.sockets, second.Addr(), first.Addr())
			}
			if err := second.Own(d.Mode()); err != nil {
				t.Fatal(err)
			}
			first.Share()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			network, addr := "tcp", second.Addr()
			if d.Table == config.TableMilter {
				network, addr = "unix", path
			}
			c, err := net.Dial(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			served, err := second.Listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			served.Close()
			if d.Table == config.TableDNSServer {
				wantPacket(t, second.Packets)
			}
		})
	}
}

// wantPacket checks that a packet to a socket arrives there.
func wantPacket(t *testing.T, to *net.UDPConn) {
	t.Helper()
	c, err := net.Dial("udp", to.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "question"); err != nil {
		t.Fatal(err)
	}
	to.SetReadDeadline(time.Now().Add(30 * time.Second))
	var b [100]byte
	if n, _, err := to.ReadFrom(b[:]); string(b[:n]) != "question" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
}

// TestDoorPartlyInherited has only one of the two sockets of a DNS server from the predecessor:
// the other is opened on the same port.
func TestDoorPartlyInherited(t *testing.T) {
	d := config.Door{Table: config.TableDNSServer, Addr: "127.0.0.1:0"}
	for i, name := range []string{"TCP", "UDP"} {
		first := openDoor(t, d, nil)
		passed := first.Inheritable()[i : i+1]
		in := inherit(t, passed)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := openDoor(t, d, in)
		if udp := second.Packets.LocalAddr().String(); second.Addr() != first.Addr() || udp != first.Addr() {
			t.Errorf("%s inherited: TCP on %s, UDP on %s, want %s", name, second.Addr(), udp, first.Addr())
		}
	}
}

// TestDoorTaken has one of the sockets of a door taken: none stays open.
func TestDoorTaken(t *testing.T) {
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	addr := udp.LocalAddr().String()
	a, err := ResolveDoor(&config.Config{}, config.Door{Table: config.TableDNSServer, Addr: addr}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Open(); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the TCP socket is open")
	}
}

// TestDoorFileTaken has a process answer at the path of a Unix socket: it keeps it.
func TestDoorFileTaken(t *testing.T) {
	d := config.Door{Table: config.TablePolicyService, Addr: "unix:" + filepath.Join(t.TempDir(), "s"), SocketMode: "0600"}
	first := openDoor(t, d, nil)
	a, err := ResolveDoor(&config.Config{}, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Open(); !errors.Is(err, unixsocket.ErrInUse) || !first.unix.InPlace() {
		t.Errorf("a second one: %v, want %v", err, unixsocket.ErrInUse)
	}
}

// TestDoorFileGone has the file of a Unix socket removed: a successor makes another.
func TestDoorFileGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	d := config.Door{Table: config.TablePolicyService, Addr: "unix:" + path, SocketMode: "0600"}
	first := openDoor(t, d, nil)
	late := inherit(t, first.Inheritable()) // removed after the handover has begun
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if passed := first.Inheritable(); len(passed) != 0 {
		t.Errorf("%v is passed on", passed)
	}
	second := openDoor(t, d, late)
	if err := second.Own(d.Mode()); err != nil {
		t.Error(err)
	}
	c, err := unixsocket.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	first.Share()
	if err := first.Close(); err != nil || !second.unix.InPlace() {
		t.Errorf("the first has removed the file of the second: %v", err)
	}
}

// TestDoorNotWanted has a successor without the predecessor's door. The file stays until the
// successor serves: if it fails, the predecessor goes on.
func TestDoorNotWanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space")
	first := openDoor(t, config.Door{Table: config.TablePolicyService, Addr: "unix:" + path, SocketMode: "0600"}, nil)
	_, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in := inherit(t, first.Inheritable())
	in.pipe = w
	if err := in.CloseRest(); err != nil || !first.unix.InPlace() {
		t.Fatalf("before the successor serves, the file is gone: %v", err)
	}
	if !in.Ready() {
		t.Error("there is no predecessor")
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the file is still there")
	}
}

// FuzzUnixKey writes paths as keys: they have no space, and are those of sockets.
func FuzzUnixKey(f *testing.F) {
	f.Add("/run/spamgate/policy.sock")
	f.Add("/with space/and=%41\n")
	f.Fuzz(func(t *testing.T, path string) {
		if path == "" {
			return
		}
		files, err := parsePassed("3=ready 4=" + unixKey(path))
		if err != nil || len(files) != 2 || files[1].key != unixKey(path) || pathOf(files[1].key) != path {
			t.Errorf("%q: %v, %v", path, files, err)
		}
	})
}
