package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/socket"
)

// On SIGUSR2 the gate starts its program file again and passes its listening sockets to the
// new process, the successor. Both accept clients until the successor reports that it
// serves. Then this process closes its copies of the sockets, whose queues live on in the
// successor, and serves the clients that it has accepted to the end. The sockets are never
// closed, so nobody is refused. Nothing changes before the successor serves, so a successor
// that fails to start does no harm.

// readyLimit bounds the time until a successor serves. Long lists take time, and so does
// asking the next hop whether it relays.
const readyLimit = 5 * time.Minute

// endLimit bounds the time in which a successor that has failed must exit.
const endLimit = 20 * time.Second

// maxRetirementGrace bounds the time for which a gate goes on as before after its successor
// took over. If it drained at once, a client that it has just accepted would get 421.
const maxRetirementGrace = 5 * time.Second

// successor is a process that takes over.
type successor struct {
	cmd  *exec.Cmd
	done chan error    // one value: nil when it serves, else why it failed
	gone chan struct{} // closed when it has exited without having served

	reload bool             // SIGHUP came after it was started: it may have read the old files
	asked  *handoverRequest // the request for it, nil if SIGUSR2 was
}

// programFile returns the file that this process was started from. If that was a symbolic
// link it returns the link, which may lead to the new program by then. It must be called
// before anything is replaced.
func programFile() string {
	executable, err := os.Executable()
	if path, lookErr := exec.LookPath(os.Args[0]); lookErr == nil {
		path, lookErr = filepath.Abs(path)
		if lookErr == nil && (err != nil || atomicfile.SameFile(path, executable)) {
			return path
		}
	}
	return executable
}

// startSuccessor starts program with the arguments of this process and passes it the
// sockets. A successor that does not serve within limit, or before ctx ends, is killed.
func startSuccessor(ctx context.Context, limit time.Duration, program string, sockets []socket.Inheritable) (n *successor, err error) {
	ready, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files, keys := []*os.File{w}, []string{socket.ReadyPipe}
	defer func() {
		for _, f := range files {
			f.Close() // the successor has its own
		}
		if err != nil {
			ready.Close()
		}
	}()
	for _, s := range sockets {
		f, err := s.File()
		if err != nil {
			return nil, err
		}
		files, keys = append(files, f), append(keys, s.Key)
	}
	failure, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, w)
	cmd := &exec.Cmd{
		Path: program,
		Args: os.Args,
		Env: append(environment(),
			socket.SocketsVariable+"="+socket.FormatPassed(keys),
			socket.FailureVariable+"="+socket.FormatFailure(len(keys))),
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		ExtraFiles: files,
	}
	if err := cmd.Start(); err != nil {
		failure.Close()
		return nil, err
	}
	n = &successor{cmd: cmd, done: make(chan error, 1), gone: make(chan struct{})}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not serve within %v", limit))
	go func() {
		defer cancel()
		n.watch(ctx, ready, failure)
	}()
	return n, nil
}

// environment returns the environment without systemd's variables for passed sockets, which
// are for this process only.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return name == "LISTEN_PID" || name == "LISTEN_FDS" || name == "LISTEN_FDNAMES"
	})
}

func (n *successor) pid() int { return n.cmd.Process.Pid }

// watch waits until the successor serves; from then on it is independent and outlives this
// process. If the pipe ready ends without a byte, the successor has failed, and the pipe
// failure may say why.
func (n *successor) watch(ctx context.Context, ready, failure *os.File) {
	defer ready.Close()
	defer failure.Close()
	expire := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Now()) })
	_, err := io.ReadFull(ready, make([]byte, 1))
	expire()
	if err == nil {
		n.done <- nil
		return
	}
	// The pipe ends shortly before the process; wait for its exit code.
	limit := endLimit
	if errors.Is(err, os.ErrDeadlineExceeded) {
		limit = 0
	}
	overdue := time.AfterFunc(limit, n.kill)
	end := n.cmd.Wait()
	overdue.Stop()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		if err = context.Cause(ctx); err == context.Canceled {
			err = errors.New("nobody waits for it any more")
		}
	case errors.As(end, &exit) && exit.Exited():
		err = fmt.Errorf("%w; %s", end, readFailure(failure))
	case end != nil:
		err = withRemedy(end, n.cmd.Path)
	default:
		err = errors.New("it ended before it served")
	}
	n.done <- err
	close(n.gone)
}

// readFailure returns why a successor that has exited could not serve.
func readFailure(pipe *os.File) string {
	const elsewhere = "what it said is on standard error"
	// A process that the successor has started might keep the pipe open.
	if err := pipe.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return elsewhere
	}
	text, err := io.ReadAll(io.LimitReader(pipe, 4096)) // PIPE_BUF: it is written at once
	if err != nil || len(text) == 0 {
		return elsewhere
	}
	return string(text)
}

// kill ends the successor at once.
func (n *successor) kill() { _ = n.cmd.Process.Kill() }

// await waits until a successor that was told to stop has exited, or has begun to serve and
// stops by itself. After the timeout, or at another signal to stop, it kills the successor.
func (n *successor) await(timeout time.Duration, signals <-chan os.Signal) {
	expired := time.After(timeout)
	for {
		select {
		case <-n.gone:
			return
		case err := <-n.done:
			if err == nil {
				return // it serves, and the signal stops it
			}
		case sig := <-signals:
			if sig != syscall.SIGTERM && sig != syscall.SIGINT {
				continue
			}
			n.kill()
		case <-expired:
			n.kill()
		}
	}
}

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
