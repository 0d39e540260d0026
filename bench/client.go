package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// client is an SMTP client that waits for each reply. It reads and writes with
// blocking system calls, as a client in C does: woken up by Go's network poller it
// would take about as long as the servers that it measures.
type client struct {
	conn *os.File
	in   *bufio.Reader
}

// dialClient connects and says EHLO.
func dialClient(ctx context.Context, addr string) (*client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // the file is a copy
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	// Fd makes it blocking. Nothing then ends a wait but a reply, or this.
	if err := syscall.SetsockoptTimeval(int(file.Fd()), syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 60}); err != nil {
		file.Close()
		return nil, err
	}
	c := &client{file, bufio.NewReader(file)}
	err = c.want("220", "")
	if err == nil {
		err = c.want("250", "EHLO client.example\r\n")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return c, nil
}

// want sends a text and wants a reply that begins with a code.
func (c *client) want(code, text string) error {
	if text != "" {
		if _, err := io.WriteString(c.conn, text); err != nil {
			return err
		}
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, code) {
			return fmt.Errorf("%.40q was answered with %q", text, line)
		}
		if line[3] != '-' {
			return nil
		}
	}
}

// close says goodbye.
func (c *client) close() {
	c.want("221", "QUIT\r\n")
	c.conn.Close()
}
