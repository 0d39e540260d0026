//go:build linux && !race

package wire

import (
	"syscall"
	"unsafe"
)

// readNow and writeNow are read(2) and write(2) on a socket that does not block.
//
// The scheduler does not hear of them. It need not, as they never wait. syscall.Read
// prepares for a call that lasts: the runtime's monitor then looks every 20 microseconds
// whether it does, and hands the goroutine's place to another thread, for nothing.
// The plain twin of this file is for other systems, and for the race detector, which
// learns from package syscall that what one goroutine has written another reads.

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
