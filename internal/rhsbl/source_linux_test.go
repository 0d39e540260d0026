package rhsbl

import (
	"bytes"
	"net"
	"slices"
	"testing"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// TestSource: an answer comes from the address that was asked. A socket of both families
// tells an IPv4 address in IPv6, and takes it in IPv4 only.
func TestSource(t *testing.T) {
	v6, v4 := net.ParseIP("2001:db8::1"), net.ParseIP("192.0.2.1").To16()
	told6 := (&ipv6.ControlMessage{Src: v6}).Marshal()
	want6, want4 := told6, (&ipv4.ControlMessage{Src: v4}).Marshal()
	// Linux tells the address of an IPv4 packet in the field after the one for the source.
	none := make([]byte, 4)
	told4 := bytes.Replace(want4, slices.Concat(v4.To4(), none), slices.Concat(none, v4.To4()), 1)
	for name, tt := range map[string]struct{ told, want []byte }{
		"IPv6":                  {told6, want6},
		"IPv4":                  {told4, want4},
		"IPv4 in IPv6":          {bytes.Replace(told6, v6, v4, 1), want4},
		"IPv4 in IPv6 and IPv4": {append(bytes.Replace(told6, v6, v4, 1), told4...), want4},
		"nothing":               {nil, nil},
		"not a message":         {[]byte{1, 2, 3}, nil},
	} {
		if got := sourceOf(tt.told); !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %x, want %x", name, got, tt.want)
		}
	}
}
