//go:build unix

package wire

import (
	"net"
	"testing"
)

// TestBufferIsGivenBack: while a client is waited for, nothing refers to a buffer, so
// that those which were used at a time do not stay with as many idle clients.
func TestBufferIsGivenBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := NewSocket(c).(*Socket)
	b := buffer{from: s}
	for _, b.wantLarge = range []bool{false, true} {
		s.raw.Control(func(fd uintptr) {
			if b.tryRead(fd) {
				t.Error("something was read")
			}
		})
		if b.b != nil || s.p != nil {
			t.Errorf("large %t: %d bytes are held by the buffer, %d by the socket", b.wantLarge, len(b.b), len(s.p))
		}
	}
}
