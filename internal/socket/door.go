package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"

	"spamgate/internal/config"
	"spamgate/internal/unixsocket"
)

// DoorAddr is where a door or the console is to be opened: a Unix socket, or a TCP address and, for DNS, the
// same address of UDP. What was inherited is open already.
type DoorAddr struct {
	Of string // its key in the configuration: see Config.Fault

	unix unixsocket.Socket
	tcp  *net.TCPAddr // nil: a Unix socket
	udp  bool

	path     *net.UnixListener
	listener net.Listener
	packets  *net.UDPConn
}

// ResolveDoor resolves the address of a door. It opens nothing.
func ResolveDoor(c *config.Config, d config.Door, in *Inherited) (DoorAddr, error) {
	a := DoorAddr{Of: d.Key("addr"), udp: d.Table == config.TableDNSServer}
	if path, ok := d.Unix(); ok {
		a.resolveUnix(unixsocket.Socket{Path: path, Mode: d.Mode()}, in)
		return a, nil
	}
	err := a.resolveTCP(c, d.Addr, in)
	return a, err
}

// ResolveConsole resolves the address of the console. It opens nothing.
func ResolveConsole(c *config.Config, in *Inherited) (DoorAddr, error) {
	a := DoorAddr{Of: "console.addr"}
	if path, ok := c.Console.Unix(); ok {
		a.resolveUnix(unixsocket.Socket{Path: path, Mode: c.Console.Mode(), Group: c.Console.SocketGroup}, in)
		return a, nil
	}
	err := a.resolveTCP(c, c.Console.Addr, in)
	return a, err
}

// ResolveTCP resolves a TCP address, of a key in the configuration. It opens nothing.
func ResolveTCP(c *config.Config, name, addr string, in *Inherited) (DoorAddr, error) {
	a := DoorAddr{Of: name}
	err := a.resolveTCP(c, addr, in)
	return a, err
}

func (a *DoorAddr) resolveUnix(s unixsocket.Socket, in *Inherited) {
	a.unix, a.path = s, in.unix(s.Path)
}

func (a *DoorAddr) resolveTCP(c *config.Config, addr string, in *Inherited) error {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return c.Fault(a.Of, fmt.Sprintf("%q: %v", addr, err), WrongName)
	}
	a.tcp, a.listener = tcp, in.Listener(tcp)
	if a.udp {
		a.packets = in.udp(udpAddr(tcp))
	}
	return nil
}

func udpAddr(a *net.TCPAddr) *net.UDPAddr { return &net.UDPAddr{IP: a.IP, Port: a.Port, Zone: a.Zone} }

// OpenDoor has the open sockets of a door.
type OpenDoor struct {
	Listener net.Listener
	Packets  *net.UDPConn // nil without UDP

	keys []string             // of both
	unix *unixsocket.Listener // the Listener, if it is one
}

// Open opens the sockets that are not open already. After an error it leaves none open that it has
// opened.
func (a DoorAddr) Open() (*OpenDoor, error) {
	if a.tcp == nil {
		return a.openUnix()
	}
	o := &OpenDoor{Listener: a.listener, Packets: a.packets, keys: []string{SocketKey(a.tcp)}}
	if !a.udp {
		var err error
		o.Listener, err = a.openTCP(a.tcp.Port)
		return o, err
	}
	o.keys = append(o.keys, udpKey(udpAddr(a.tcp)))
	const tries = 20 // for a port that both protocols have free
	for try := 1; ; try++ {
		err := a.openBoth(o)
		if err == nil {
			return o, nil
		}
		if a.listener != nil || a.packets != nil || a.tcp.Port != 0 || try == tries {
			return nil, err
		}
	}
}

// openBoth opens TCP and UDP on the same port.
func (a DoorAddr) openBoth(o *OpenDoor) (err error) {
	port := a.tcp.Port
	if a.packets != nil {
		port = a.packets.LocalAddr().(*net.UDPAddr).Port
	}
	if o.Listener, err = a.openTCP(port); err != nil {
		return err
	}
	if a.packets != nil {
		return nil
	}
	network := "udp"
	if a.tcp.IP.To4() != nil {
		network = "udp4" // else 0.0.0.0 would include every IPv6 address
	}
	addr := udpAddr(a.tcp)
	addr.Port = o.Listener.Addr().(*net.TCPAddr).Port
	if o.Packets, err = net.ListenUDP(network, addr); err != nil && a.listener == nil {
		err = errors.Join(err, o.Listener.Close())
	}
	return err
}

// openTCP opens the TCP socket on a port.
func (a DoorAddr) openTCP(port int) (net.Listener, error) {
	addr := *a.tcp
	addr.Port = port
	return BindAddr{Addr: &addr, open: a.listener}.Listen()
}

// openUnix opens the Unix socket. One that another process left is replaced, but not one where
// a process answers.
func (a DoorAddr) openUnix() (*OpenDoor, error) {
	o := &OpenDoor{keys: []string{unixKey(a.unix.Path)}}
	var err error
	if a.path != nil {
		if o.unix, err = unixsocket.Adopt(a.path, a.unix.Path); err != nil { // nobody could reach it
			_ = a.path.Close()
		}
	}
	if o.unix == nil {
		if err = unixsocket.CheckFree(a.unix.Path); err == nil {
			o.unix, err = a.unix.Listen()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("unix socket %s: %w", a.unix.Path, err)
	}
	o.Listener = o.unix
	return o, nil
}

// Own makes this process the owner of an inherited Unix socket's file: it has a mode, and Close
// removes it.
func (o *OpenDoor) Own(mode fs.FileMode) error {
	if o.unix == nil {
		return nil
	}
	o.unix.Own()
	return o.unix.SetMode(mode)
}

// InPlace reports whether mail servers can reach the door: the file of a Unix socket may have
// been removed or replaced.
func (o *OpenDoor) InPlace() bool { return o.unix == nil || o.unix.InPlace() }

// Inheritable returns the sockets for a successor. Without its file a Unix socket is of no use,
// so that the successor makes another.
func (o *OpenDoor) Inheritable() []Inheritable {
	if !o.InPlace() {
		return nil
	}
	sockets := []Inheritable{{o.keys[0], o.Listener}}
	if o.Packets != nil {
		sockets = append(sockets, Inheritable{o.keys[1], o.Packets})
	}
	return sockets
}

// Share leaves the file of a Unix socket to a successor.
func (o *OpenDoor) Share() {
	if o.unix != nil {
		o.unix.Share()
	}
}

// Close closes the sockets.
func (o *OpenDoor) Close() error {
	err := o.Listener.Close()
	if o.Packets != nil {
		err = errors.Join(err, o.Packets.Close())
	}
	return err
}

// Addr returns the address of the door.
func (o *OpenDoor) Addr() string {
	if o.unix != nil {
		return "unix:" + o.unix.Path()
	}
	return o.Listener.Addr().String()
}
