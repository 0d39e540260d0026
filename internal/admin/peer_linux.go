package admin

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf returns who has connected (SO_PEERCRED, unix(7)).
func peerOf(c net.Conn) Peer {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || credErr != nil {
		return Peer{}
	}
	return Peer{Known: true, UID: int(cred.Uid), PID: int(cred.Pid)}
}
