package harness

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// ports counts the ports that FreeAddr has tried. They are below the range from which
// the system chooses.
var ports atomic.Int32

const firstPort, lastPort = 10_001, 30_000

// FreeAddr returns an address that is free, and stays free until a test uses it. Its IP
// address is on loopback and belongs to this process alone, and its port is not one that
// the system chooses.
func FreeAddr(t testing.TB) string {
	t.Helper()
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	for {
		port := firstPort - 1 + int(ports.Add(1))
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			l.Close()
			return addr
		}
		if port >= lastPort {
			t.Fatal(err)
		}
	}
}
