//go:build !linux

package socket

import "net"

// keepAliveOnce does nothing: Go sets the options on each connection. On systems other than
// Linux connections may not inherit them.
func keepAliveOnce(*net.ListenConfig) {}
