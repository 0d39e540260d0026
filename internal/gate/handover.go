package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"spamgate/internal/admin"
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

// startHandover starts a successor, unless one is starting already. The request is nil if it
// was a signal.
func (s *supervisor) startHandover(asked *handoverRequest) {
	log := s.gate.log
	switch {
	case os.Getpid() == 1:
		log.Error("not handed over, this process goes on", "error", errFirstProcess)
		asked.fail(fmt.Errorf("%w: %w", admin.ErrNotHandedOver, errFirstProcess))
		return
	case s.successor != nil:
		log.Warn("already handing over", "pid", s.successor.pid())
		asked.fail(fmt.Errorf("%w to process %d", admin.ErrHandingOver, s.successor.pid()))
		return
	case !s.isOpen && asked != nil:
		asked.fail(fmt.Errorf("%w: it does not listen yet", admin.ErrNotHandedOver))
		return
	case !s.isOpen:
		log.Info("to be handed over once the gate is open")
		s.handOver = true
		return
	}
	if err := s.gate.hits.Save(); err != nil { // it reads them when it starts
		log.Warn("hits are not kept", "error", err)
	}
	ctx, limit := s.ctx, readyLimit
	if asked != nil {
		ctx, limit = asked.ctx, asked.limit
	}
	n, err := startSuccessor(ctx, limit, s.program, s.gate.heldSockets())
	if err != nil {
		err = withRemedy(err, s.program)
		log.Error("not handed over, this process goes on", "program", s.program, "error", err)
		asked.fail(fmt.Errorf("%w: %w", admin.ErrNotHandedOver, err))
		return
	}
	n.asked = asked
	s.successor, s.succeeded = n, n.done
	log.Info("handing over", "pid", n.pid(), "program", s.program)
}

// abandonHandover continues to serve after the successor has failed.
func (s *supervisor) abandonHandover(err error) {
	s.gate.log.Error("not handed over, this process goes on", "pid", s.successor.pid(), "error", err)
	asked := s.successor.asked
	s.successor, s.succeeded = nil, nil
	s.gate.keepSocket()
	asked.fail(fmt.Errorf("%w: %w", admin.ErrNotHandedOver, err))
}

// retire ends the gate after its successor has begun to serve. To systemd the service does
// not stop but has another main process. systemd accepts that message from the present main
// process only (NotifyAccess=main), so it is sent here.
func (s *supervisor) retire() error {
	n := s.successor
	close(s.gate.answers.ending)
	s.gate.logEnd.Reopen() // a log file may have been moved away before SIGUSR2
	s.gate.log.Info("handed over", "pid", n.pid())
	daemon.SdNotify(false, fmt.Sprintf("MAINPID=%d\n%s", n.pid(), daemon.SdNotifyReady))
	n.asked.succeed(n.pid(), s.gate)
	s.gate.publisher.cancel() // the successor publishes
	if n.reload {
		if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			s.gate.log.Warn("passing SIGHUP on", "pid", n.pid(), "error", err)
		}
	}
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
	return s.gate.retire(s.ctx, s.signals)
}

// retirementGrace returns how long the gate goes on as before after its successor took over.
func (g *gate) retirementGrace() time.Duration {
	return min(maxRetirementGrace, g.config.Listen.ShutdownTimeout)
}

// releaseSockets closes the listening sockets, whose copies the successor has.
func (g *gate) releaseSockets() error {
	errs := []error{g.releaseDoors()}
	for _, e := range g.listeners {
		for _, l := range e.open {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(append(errs, g.adminServers().retire())...)
}

// retire stops accepting clients, lets the present ones go on for the grace period, and then
// shuts down.
func (g *gate) retire(ctx context.Context, signals <-chan os.Signal) error {
	g.answers.open.Store(nil)
	go g.fleet.close() // the successor waits for it; g.close does so, too
	if err := g.releaseSockets(); err != nil {
		g.log.Warn("closing a socket that was handed over", "error", err)
	}
	grace := time.After(g.retirementGrace())
	for {
		select {
		case <-grace:
			return g.shutdown(ctx, signals)
		case sig := <-signals:
			switch sig {
			case syscall.SIGHUP:
				g.logEnd.Reopen()
			case syscall.SIGTERM, syscall.SIGINT:
				return g.shutdown(ctx, signals)
			}
		}
	}
}
