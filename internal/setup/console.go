package setup

import (
	"fmt"
	"net"

	"spamgate/internal/certs"
	"spamgate/internal/socket"
)

// console checks the address of the console, and its certificates.
func (f *faults) console() {
	c := f.config.Console
	if c.Addr == "" {
		return
	}
	const key = "console.addr"
	if path, ok := c.Unix(); ok {
		f.doorSocket(key, path)
		socketGroup("console.socket_group", c.SocketGroup, f.fail)
		return
	}
	if tcp, err := net.ResolveTCPAddr("tcp", c.Addr); err != nil {
		f.fail(key, fmt.Sprintf("%q: %v", c.Addr, err), socket.WrongName)
	} else if !f.taken(key, c.Addr, tcp) && !socket.IsLocal(tcp.IP) {
		f.warn(key, fmt.Sprintf("%q is not an address of this machine now; the start fails unless it has it then", c.Addr), socket.ForeignAddress)
	}
	f.certificates(certificateFiles(c.TLSCert, c.TLSKey), map[certs.Files]bool{}, func(key string) string { return "console." + key })
}
