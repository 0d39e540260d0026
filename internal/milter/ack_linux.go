package milter

import (
	"net"

	"golang.org/x/sys/unix"
)

// acknowledge has the system acknowledge what has come over TCP now, and not 40 ms later.
// Sendmail writes each packet for itself, and Nagle's algorithm holds back the second of two
// packets until the first is acknowledged. So it would wait after all macros, and after each
// header field that is not answered.
func acknowledge(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	// Without it the connection is slower, and nothing else.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
	})
}
