package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

// With the PROXY protocol a proxy names the client
// (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt).

// Limits of a header.
const (
	proxyTimeout  = 30 * time.Second // unless CommandTimeout is shorter
	maxProxyLine  = 107              // version 1, with its CRLF
	maxProxyBytes = 4096             // version 2, with its TLVs
)

var (
	proxyLine      = []byte("PROXY ")
	proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")
)

var errNoProxyHeader = errors.New("no header of the PROXY protocol")

// readProxyHeader reads the header at the beginning of a proxy's connection, and sets
// the client's addresses. It reports whether there was one.
func (o opening) readProxyHeader() bool {
	c := o.c
	err := o.takeProxyHeader(time.Now().Add(min(c.cfg.CommandTimeout, proxyTimeout)))
	if err != nil && err != io.EOF && !errors.Is(err, errInterrupted) {
		c.notice("sends no header of the PROXY protocol")
	}
	return err == nil
}

func (o opening) takeProxyHeader(deadline time.Time) error {
	c := o.c
	for {
		data := c.in.bytes()
		n, err := proxyHeaderLen(data)
		if err != nil {
			return err
		}
		if n > 0 && len(data) >= n {
			client, local, err := parseProxyHeader(data[:n])
			if err != nil {
				return err
			}
			if client.IsValid() {
				c.peer, c.local, c.named = client, local, true
			}
			c.in.discard(n)
			return nil
		}
		if err := c.fill(time.Until(deadline)); err != nil {
			return err
		}
	}
}

// proxyHeaderLen returns the length of the header at the start of data, or 0 if more
// must be read first.
func proxyHeaderLen(data []byte) (int, error) {
	switch {
	case startsLike(data, proxyLine):
		line := data[:min(len(data), maxProxyLine)]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			return i + 1, nil
		}
		if len(line) == maxProxyLine {
			return 0, errNoProxyHeader
		}
		return 0, nil
	case startsLike(data, proxySignature):
		if len(data) < 16 {
			return 0, nil
		}
		n := 16 + int(binary.BigEndian.Uint16(data[14:]))
		if n > maxProxyBytes {
			return 0, errNoProxyHeader
		}
		return n, nil
	}
	return 0, errNoProxyHeader
}

// startsLike reports whether data begins with prefix, or prefix with data.
func startsLike(data, prefix []byte) bool {
	n := min(len(data), len(prefix))
	return bytes.Equal(data[:n], prefix[:n])
}

// parseProxyHeader parses a whole header. The addresses are zero if those of the
// connection hold: the header names no client (LOCAL, UNKNOWN, UNSPEC), or one that did
// not come by TCP.
func parseProxyHeader(header []byte) (client, local netip.AddrPort, err error) {
	const commandByte, familyByte, proxyCommand = 12, 13, 0x21
	if header[0] != proxyLine[0] && header[familyByte] == 0 && header[commandByte] == proxyCommand {
		return client, local, nil // the library refuses this
	}
	h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(header)))
	if err != nil {
		return client, local, err
	}
	from, to, ok := h.TCPAddrs()
	if !ok || h.Command.IsLocal() {
		return client, local, nil
	}
	return PlainAddr(from.AddrPort()), PlainAddr(to.AddrPort()), nil
}
