package socket

import (
	"net"
	"syscall"
	"testing"
)

// TestKeepAlive looks at what an accepted connection has from its listener.
func TestKeepAlive(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		l, err := BindAddr{Addr: tcp}.Listen()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		raw, err := c.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []struct {
			name             string
			level, opt, want int
		}{
			{"SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{"TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
			{"TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 15},
			{"TCP_KEEPCNT", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 9},
			{"TCP_NODELAY", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
		} {
			raw.Control(func(fd uintptr) {
				if got, err := syscall.GetsockoptInt(int(fd), o.level, o.opt); got != o.want || err != nil {
					t.Errorf("%s: %s is %d, %v, want %d", addr, o.name, got, err, o.want)
				}
			})
		}
	}
}
