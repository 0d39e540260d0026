//go:build !linux

package unixsocket

import (
	"io/fs"
	"net"
	"os"
)

// socketPath calls use with a path of the socket that is at path. It follows no link.
func socketPath(path string, use func(path string) error) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return ErrNotSocket
	}
	return shortPath(path, use)
}

// PeerOf returns an unknown Peer: other systems have other calls.
func PeerOf(net.Conn) Peer { return Peer{} }
