//go:build !linux

package main

import "net"

// keepAliveOnce leaves it to Go, which sets the options for each connection: elsewhere
// than on Linux they may not be inherited.
func keepAliveOnce(*net.ListenConfig) {}
