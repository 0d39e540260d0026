//go:build !linux || race

package wire

import "syscall"

func readNow(fd uintptr, p []byte) (int, error)  { return again(syscall.Read, fd, p) }
func writeNow(fd uintptr, p []byte) (int, error) { return again(syscall.Write, fd, p) }

// again repeats a call that a signal has interrupted.
func again(call func(int, []byte) (int, error), fd uintptr, p []byte) (int, error) {
	for {
		if n, err := call(int(fd), p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
