package main

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// client is an SMTP client that waits for each reply. It connects, reads and
// writes with blocking system calls, as a client in C does: Go's network poller
// would cost the generator about as much as the servers that it measures.
type client struct {
	conn *os.File
	in   *bufio.Reader
}

func newClient() *client { return &client{in: bufio.NewReaderSize(nil, 512)} }

// dial connects, also once more, and says EHLO.
func (c *client) dial(addr netip.AddrPort) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	c.conn = os.NewFile(uintptr(fd), addr.String()) // blocking, as it is
	if err := c.greeted(fd, addr); err != nil {
		c.conn.Close()
		return err
	}
	return nil
}

func (c *client) greeted(fd int, addr netip.AddrPort) error {
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		return os.NewSyscallError("connect", err)
	}
	// Nothing else ends a wait for a reply.
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 60}); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	c.in.Reset(c.conn)
	if err := c.want("220", ""); err != nil {
		return err
	}
	return c.want("250", "EHLO client.example\r\n")
}

// want sends a text and wants a reply that begins with a code.
func (c *client) want(code, text string) error {
	if text != "" {
		if _, err := io.WriteString(c.conn, text); err != nil {
			return err
		}
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(line), code) {
			return fmt.Errorf("%.40q was answered with %q", text, line)
		}
		if line[3] != '-' {
			return nil
		}
	}
}

// close says goodbye.
func (c *client) close() error {
	err := c.want("221", "QUIT\r\n")
	c.conn.Close()
	return err
}
