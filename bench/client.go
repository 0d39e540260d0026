package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// client is an SMTP client that waits for each reply. It connects, reads and
// writes with blocking system calls, as a client in C does: Go's network poller
// would cost the generator about as much CPU as the measured servers use.
type client struct {
	conn *os.File
	in   *bufio.Reader
}

func newClient() *client { return &client{in: bufio.NewReaderSize(nil, 512)} }

// dial opens a connection, which may be a further one, and sends EHLO.
func (c *client) dial(addr netip.AddrPort) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	c.conn = os.NewFile(uintptr(fd), addr.String()) // stays blocking
	if err := c.greet(fd, addr); err != nil {
		c.conn.Close()
		return err
	}
	return nil
}

// greet connects the socket, waits for the greeting and sends EHLO.
func (c *client) greet(fd int, addr netip.AddrPort) error {
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		return os.NewSyscallError("connect", err)
	}
	// The only limit of the wait for a reply.
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 60}); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	c.in.Reset(c.conn)
	if err := c.want("220", ""); err != nil {
		return err
	}
	return c.want("250", "EHLO client.example\r\n")
}

// want sends text, if any, and reads a reply, which must begin with code.
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

// session runs f in a connection of its own.
func (c *client) session(addr netip.AddrPort, f func() error) error {
	if err := c.dial(addr); err != nil {
		return err
	}
	return cmp.Or(f(), c.close())
}

// close sends QUIT and closes the connection.
func (c *client) close() error {
	err := c.want("221", "QUIT\r\n")
	c.conn.Close()
	return err
}
