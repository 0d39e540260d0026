//go:build !linux

package milter

import "net"

// acknowledge does nothing: only Linux lets a program ask for an acknowledgement.
func acknowledge(net.Conn) {}
