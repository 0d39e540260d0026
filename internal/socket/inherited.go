package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"spamgate/internal/config"
	"spamgate/internal/unixsocket"
)

// SocketsVariable is the environment variable that tells a successor which descriptors it has:
// "3=ready 4=[::]:25 5=systemd 6=udp:127.0.0.1:53 7=unix:/run/spamgate/policy". One is the pipe on
// which it reports that it serves. The others are sockets, each with the address that it was
// opened for, or with "systemd". Older versions know TCP only, and refuse the others: what they
// would leave open, nobody would serve.
//
// This is not systemd's protocol (sd_listen_fds(3)), which needs the receiver's process number
// in the environment, and that is not known before the fork.
const SocketsVariable = "SPAMGATE_SOCKETS"

// FailureVariable is the environment variable that names the descriptor of a pipe, to which a
// successor that cannot serve writes why. It is not part of SocketsVariable because versions
// that do not know it must not stumble over it.
const FailureVariable = "SPAMGATE_FAILURE_PIPE"

const (
	ReadyPipe       = "ready"
	firstDescriptor = 3 // after standard input, output and error
)

// passedFile is a descriptor in SocketsVariable.
type passedFile struct {
	fd  int
	key string // ReadyPipe, config.Systemd, a SocketKey, a udpKey or a unixKey
}

// FormatPassed returns the value of the variable for descriptors from firstDescriptor on.
func FormatPassed(keys []string) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d=%s", firstDescriptor+i, key)
	}
	return b.String()
}

// parsePassed parses the output of FormatPassed.
func parsePassed(value string) ([]passedFile, error) {
	var files []passedFile
	pipes := 0
	for field := range strings.FieldsSeq(value) {
		number, key, _ := strings.Cut(field, "=")
		fd, err := strconv.ParseInt(number, 10, 32)
		if err != nil || fd < firstDescriptor || key == "" {
			return nil, fmt.Errorf("%q is not a descriptor with an address", field)
		}
		if slices.ContainsFunc(files, func(f passedFile) bool { return f.fd == int(fd) }) {
			return nil, fmt.Errorf("descriptor %d is there twice", fd)
		}
		if key == ReadyPipe {
			pipes++
		} else if !isSocketKey(key) {
			return nil, fmt.Errorf("%q is not an address", key)
		}
		files = append(files, passedFile{int(fd), key})
	}
	if pipes != 1 {
		return nil, fmt.Errorf("%d descriptors are called %q, want one", pipes, ReadyPipe)
	}
	return files, nil
}

// isSocketKey reports whether a key is that of a socket.
func isSocketKey(key string) bool {
	if path, ok := strings.CutPrefix(key, unixScheme); ok {
		_, err := url.PathUnescape(path)
		return err == nil && path != ""
	}
	_, err := netip.ParseAddrPort(strings.TrimPrefix(key, udpScheme))
	return err == nil || key == config.Systemd
}

// What begins the keys of sockets other than TCP's.
const (
	udpScheme  = "udp:"
	unixScheme = "unix:"
)

// udpKey returns the key of a UDP socket.
func udpKey(a *net.UDPAddr) string {
	return udpScheme + SocketKey(&net.TCPAddr{IP: a.IP, Port: a.Port, Zone: a.Zone})
}

// unixKey returns the key of a Unix socket. It has no space in it.
func unixKey(path string) string {
	return unixScheme + (&url.URL{Path: path}).EscapedPath()
}

// pathOf returns the path in the key of a Unix socket.
func pathOf(key string) string {
	path, _ := url.PathUnescape(strings.TrimPrefix(key, unixScheme)) // see isSocketKey
	return path
}

// SocketKey returns the canonical form of a listening address. No IP address and [::] mean
// every address of both families; 0.0.0.0 means every IPv4 address.
func SocketKey(a *net.TCPAddr) string {
	ip, ok := netip.AddrFromSlice(a.IP)
	if !ok {
		ip = netip.IPv6Unspecified()
	}
	return netip.AddrPortFrom(ip.Unmap().WithZone(a.Zone), uint16(a.Port)).String()
}

// Inherited holds what a gate has from its predecessor. It is nil for a gate that was started
// in the ordinary way.
type Inherited struct {
	pipe    *os.File // nil after Ready
	failure *os.File // nil after Ready or Fail, or if the predecessor does not ask
	sockets []inheritedSocket

	unwanted []*unixsocket.Listener // closed, and their files removed, by Ready
}

// inheritedSocket is a socket that has not been taken yet: a *net.TCPListener, *net.UnixListener
// or *net.UDPConn.
type inheritedSocket struct {
	key    string
	socket io.Closer
}

// address returns the key of the address that the socket has now, which is not the one that it
// was opened for if that had port 0.
func (s inheritedSocket) address() string {
	switch l := s.socket.(type) {
	case *net.TCPListener:
		return SocketKey(l.Addr().(*net.TCPAddr))
	case *net.UDPConn:
		return udpKey(l.LocalAddr().(*net.UDPAddr))
	}
	return s.key
}

// FormatFailure returns the value of FailureVariable for the descriptor that follows n others
// of FormatPassed.
func FormatFailure(n int) string { return strconv.Itoa(firstDescriptor + n) }

// takeFailurePipe takes the descriptor that FailureVariable names, if it names one.
func takeFailurePipe() (*os.File, error) {
	value, ok := os.LookupEnv(FailureVariable)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(FailureVariable); err != nil {
		return nil, err
	}
	fd, err := strconv.ParseInt(value, 10, 32)
	if err != nil || fd < firstDescriptor {
		return nil, fmt.Errorf("%s=%q is not a descriptor", FailureVariable, value)
	}
	syscall.CloseOnExec(int(fd))
	return os.NewFile(uintptr(fd), "failure"), nil
}

// Inherit takes the descriptors that SocketsVariable and FailureVariable name, and removes the
// variables from the environment.
func Inherit() (*Inherited, error) {
	value, ok := os.LookupEnv(SocketsVariable)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(SocketsVariable); err != nil {
		return nil, err
	}
	failure, err := takeFailurePipe()
	if err != nil {
		return nil, err
	}
	files, err := parsePassed(value)
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w; a gate sets it for the process that takes over from it, nobody else should", SocketsVariable, value, err)
	}
	in := &Inherited{failure: failure}
	for _, f := range files {
		syscall.CloseOnExec(f.fd)
		file := os.NewFile(uintptr(f.fd), f.key)
		if f.key == ReadyPipe {
			in.pipe = file
			continue
		}
		socket, err := socketOf(f.key, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s=%q: descriptor %d: %w", SocketsVariable, value, f.fd, err)
		}
		in.sockets = append(in.sockets, inheritedSocket{f.key, socket})
	}
	return in, nil
}

// socketOf returns a copy of the socket in a file, which is of the sort that the key says.
func socketOf(key string, file *os.File) (io.Closer, error) {
	if strings.HasPrefix(key, udpScheme) {
		conn, err := net.FilePacketConn(file)
		if udp, ok := conn.(*net.UDPConn); ok {
			return udp, nil
		}
		return nil, errors.Join(errors.New("not a UDP socket"), err)
	}
	l, err := net.FileListener(file)
	switch l := l.(type) {
	case *net.TCPListener:
		if !strings.HasPrefix(key, unixScheme) {
			return l, nil
		}
	case *net.UnixListener:
		if strings.HasPrefix(key, unixScheme) {
			return l, nil
		}
	}
	if strings.HasPrefix(key, unixScheme) {
		return nil, errors.Join(errors.New("not a listening Unix socket"), err)
	}
	return nil, errors.Join(errors.New("not a listening TCP socket"), err)
}

// Listener takes the socket for an address, or returns nil if there is none. It prefers one
// that was opened for the same address, which may have port 0, to one that only listens there.
func (in *Inherited) Listener(addr *net.TCPAddr) net.Listener {
	l, _ := in.take(SocketKey(addr)).(*net.TCPListener)
	if l == nil {
		return nil
	}
	return l
}

// udp takes the socket for an address, or returns nil if there is none.
func (in *Inherited) udp(addr *net.UDPAddr) *net.UDPConn {
	c, _ := in.take(udpKey(addr)).(*net.UDPConn)
	return c
}

// unix takes the socket at a path, or returns nil if there is none.
func (in *Inherited) unix(path string) *net.UnixListener {
	l, _ := in.take(unixKey(path)).(*net.UnixListener)
	return l
}

// take takes the socket with a key, or else that whose address has it.
func (in *Inherited) take(key string) io.Closer {
	if in == nil {
		return nil
	}
	i := slices.IndexFunc(in.sockets, func(s inheritedSocket) bool { return s.key == key })
	if i < 0 {
		i = slices.IndexFunc(in.sockets, func(s inheritedSocket) bool { return s.address() == key })
	}
	if i < 0 {
		return nil
	}
	taken := in.sockets[i].socket
	in.sockets = slices.Delete(in.sockets, i, i+1)
	return taken
}

// systemd takes the sockets that systemd had passed to the first process.
func (in *Inherited) systemd() []net.Listener {
	if in == nil {
		return nil
	}
	var taken []net.Listener
	in.sockets = slices.DeleteFunc(in.sockets, func(s inheritedSocket) bool {
		l, ok := s.socket.(*net.TCPListener)
		if ok = ok && s.key == config.Systemd; ok {
			taken = append(taken, l)
		}
		return ok
	})
	return taken
}

// CloseRest closes the sockets that have not been taken. Unix sockets it leaves to Ready, since
// their files belong to the predecessor until then.
func (in *Inherited) CloseRest() error {
	if in == nil {
		return nil
	}
	var errs []error
	for _, s := range in.sockets {
		if l, ok := s.socket.(*net.UnixListener); ok {
			if adopted, err := unixsocket.Adopt(l, pathOf(s.key)); err == nil {
				in.unwanted = append(in.unwanted, adopted)
				continue
			}
		}
		errs = append(errs, s.socket.Close())
	}
	in.sockets = nil
	return errors.Join(errs...)
}

// Ready tells the predecessor that this gate serves. It reports whether there is a predecessor
// that was not told before.
func (in *Inherited) Ready() bool {
	if in == nil || in.pipe == nil {
		return false
	}
	// If the predecessor has exited, this gate serves all the same.
	_, _ = in.pipe.WriteString("\n")
	_ = in.pipe.Close()
	in.pipe = nil
	in.closeFailure()
	for _, l := range in.unwanted {
		l.Own()
		_ = l.Close() // the file stays if it cannot be removed
	}
	in.unwanted = nil
	return true
}

// maxFailure is how much of an error the predecessor gets. It reads once this process has
// exited, so that more would block.
const maxFailure = 4096

// Fail tells the predecessor why this gate cannot serve. After Ready it does nothing.
func (in *Inherited) Fail(err error) {
	if in == nil || in.failure == nil {
		return
	}
	text := err.Error()
	_, _ = in.failure.WriteString(text[:min(len(text), maxFailure)]) // the predecessor may have exited
	in.closeFailure()
}

func (in *Inherited) closeFailure() {
	if in.failure != nil {
		_ = in.failure.Close()
		in.failure = nil
	}
}
