package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"syscall"
)

// errFirstProcess is why a gate in a container does not hand over.
var errFirstProcess = errors.New("this is process 1, whose end ends its container with the new process; start a container of the new version instead")

// withRemedy adds what to do to the error of a program file that cannot be started, or that
// crashes: an installation of it was cut off, or it is for another machine.
func withRemedy(err error, program string) error {
	unusable := slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC}, func(cause error) bool {
		return errors.Is(err, cause)
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			unusable = slices.Contains([]syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL}, status.Signal())
		}
	}
	if !unusable {
		return err
	}
	return fmt.Errorf("%w; %s is not a whole program for this machine: install it again, and then hand over", err, program)
}
