//go:build linux && !race

package wire

import (
	"syscall"
	"unsafe"
)

// readNow and writeNow call read(2) and write(2) on a non-blocking socket, without
// telling the scheduler. syscall.Read prepares for a call that waits: the runtime's
// monitor checks it every 20 µs and hands its processor to another thread, needlessly,
// since these calls never wait. Other systems and the race detector, which needs to see
// package syscall, use syscalls_plain.go.

func readNow(fd uintptr, p []byte) (int, error)  { return callNow(syscall.SYS_READ, fd, p) }
func writeNow(fd uintptr, p []byte) (int, error) { return callNow(syscall.SYS_WRITE, fd, p) }

// callNow makes a system call with a buffer, which must not be empty.
func callNow(trap, fd uintptr, p []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
