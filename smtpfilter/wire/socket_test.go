package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"spamgate/smtpfilter/wire"
)

// tcpPair returns both ends of a TCP connection.
func tcpPair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return c.(*net.TCPConn), a.(*net.TCPConn)
}

// sockets are a Socket and its plain twin.
var sockets = map[string]func(net.Conn) net.Conn{
	"Socket":  wire.NewSocket,
	"TCPConn": func(c net.Conn) net.Conn { return c },
}

// TestSocketBytes sends many bytes both ways at once, in pieces that neither side's
// buffers hold, so that reads and writes wait.
func TestSocketBytes(t *testing.T) {
	t.Parallel()
	for name, wrap := range sockets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := tcpPair(t)
			s := wrap(near)
			rng := rand.New(rand.NewPCG(1, 2))
			sent := make([]byte, 8<<20)
			for i := range sent {
				sent[i] = byte(rng.Uint32())
			}
			go func() { // the far end gives back what it gets
				io.Copy(far, far)
				far.CloseWrite()
			}()
			go func() {
				for rest := sent; len(rest) > 0; {
					n := min(len(rest), 1+rng.IntN(1<<20))
					if m, err := s.Write(rest[:n]); m != n || err != nil {
						t.Errorf("%d of %d bytes written: %v", m, n, err)
						break
					}
					rest = rest[n:]
				}
				near.CloseWrite()
			}()
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back, want %d, the same: %v", len(got), len(sent), err)
			}
			if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("behind the end %d, %v", n, err)
			}
		})
	}
}

// TestSocketEnds has reads and writes end in all ways.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	past := time.Unix(1, 0)
	fill := func(c net.Conn) (err error) {
		for err == nil {
			_, err = c.Write(make([]byte, 1<<20))
		}
		return err
	}
	read := func(c net.Conn) error {
		_, err := c.Read(make([]byte, 10))
		return err
	}
	for _, tt := range []struct {
		name string
		do   func(c net.Conn) error
		end  func(near, far *net.TCPConn)
		want error
	}{
		{"read: closed there", read, func(_, far *net.TCPConn) { far.Close() }, io.EOF},
		{"read: closed here", read, func(near, _ *net.TCPConn) { near.Close() }, net.ErrClosed},
		{"read: deadline", read, func(near, _ *net.TCPConn) { near.SetReadDeadline(past) }, os.ErrDeadlineExceeded},
		{"write: closed here", fill, func(near, _ *net.TCPConn) { near.Close() }, net.ErrClosed},
		{"write: deadline", fill, func(near, _ *net.TCPConn) { near.SetWriteDeadline(past) }, os.ErrDeadlineExceeded},
		{"write: reset", fill, func(_, far *net.TCPConn) { far.SetLinger(0); far.Close() }, nil},
	} {
		for name, wrap := range sockets {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				near, far := tcpPair(t)
				ended := make(chan error)
				go func() { ended <- tt.do(wrap(near)) }()
				tt.end(near, far)
				err := <-ended
				var call *os.SyscallError
				if tt.want == nil && !errors.As(err, &call) || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				var told *net.OpError
				if err != io.EOF && (!errors.As(err, &told) || told.Op != tt.name[:len(told.Op)] || told.Addr.String() != near.RemoteAddr().String()) {
					t.Errorf("%v does not say what failed, and where", err)
				}
			})
		}
	}
}
