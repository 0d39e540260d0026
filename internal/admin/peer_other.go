//go:build !linux

package admin

import "net"

// peerOf returns an unknown Peer: other systems have other calls.
func peerOf(net.Conn) Peer { return Peer{} }
