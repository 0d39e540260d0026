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

	"spamgate/internal/durable"
	"spamgate/internal/socket"
)

// On SIGUSR2 the gate starts its program's file again and gives the new process,
// the successor, its listening sockets. Both take clients until the successor has
// said that it serves; then this one closes its copies of the sockets, whose
// queues live on in the successor, and serves those that it has accepted to the
// end. As the sockets are never closed, nobody is refused; as nothing changes
// before the successor serves, one that does not come up does no harm.

// readyLimit is how long a successor may take until it serves. Long lists take
// their time, and so may a next hop that is asked whether it relays.
const readyLimit = 5 * time.Minute

// endLimit is how long a successor that has given up may take until it has ended.
const endLimit = 20 * time.Second

// retirementGrace is how long, at most, a gate that was succeeded lets its clients
// go on as before. Drained at once, a client that it has just accepted would be
// told 421 in place of being served.
const retirementGrace = 5 * time.Second

// successor is a process that is to take over.
type successor struct {
	cmd  *exec.Cmd
	done chan error    // one value: nil once it serves, else why it never will
	gone chan struct{} // closed once it has ended without having served

	reload bool // SIGHUP has come meanwhile: it may have read the old files
}

// programFile is the file that this process was started from, to be started
// again. Where that was a symbolic link it is the link: the new program may be
// behind it by then. It must be asked for before anything is replaced.
func programFile() string {
	executable, err := os.Executable()
	if path, lookErr := exec.LookPath(os.Args[0]); lookErr == nil {
		path, lookErr = filepath.Abs(path)
		if lookErr == nil && (err != nil || durable.SameFile(path, executable)) {
			return path
		}
	}
	return executable
}

// startSuccessor starts program with this process's arguments and gives it the
// sockets.
func startSuccessor(program string, sockets []socket.InheritableListener) (*successor, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files, keys := []*os.File{w}, []string{socket.ReadyPipe}
	defer func() {
		for _, f := range files {
			f.Close() // the successor has its own
		}
	}()
	for _, s := range sockets {
		f, err := s.File()
		if err != nil {
			r.Close()
			return nil, err
		}
		files, keys = append(files, f), append(keys, s.Key)
	}
	cmd := &exec.Cmd{
		Path:       program,
		Args:       os.Args,
		Env:        append(environment(), socket.SocketsVariable+"="+socket.FormatPassed(keys)),
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		ExtraFiles: files,
	}
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	n := &successor{cmd: cmd, done: make(chan error, 1), gone: make(chan struct{})}
	go n.watch(r)
	return n, nil
}

// environment is this process's, without what systemd has said of the sockets it
// passed: that was for this process alone.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return name == "LISTEN_PID" || name == "LISTEN_FDS" || name == "LISTEN_FDNAMES"
	})
}

func (n *successor) pid() int { return n.cmd.Process.Pid }

// watch waits until the successor serves. It then is on its own, and outlives
// this process. The pipe's end without a word is its own end, or as good.
func (n *successor) watch(pipe *os.File) {
	defer pipe.Close()
	err := pipe.SetReadDeadline(time.Now().Add(readyLimit))
	if err == nil {
		_, err = io.ReadFull(pipe, make([]byte, 1))
	}
	if err == nil {
		n.done <- nil
		return
	}
	// The pipe ends a little before the process does, and its exit code is of
	// interest.
	patience := endLimit
	if errors.Is(err, os.ErrDeadlineExceeded) {
		patience = 0
	}
	overdue := time.AfterFunc(patience, n.kill)
	end := n.cmd.Wait()
	overdue.Stop()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("it did not serve within %v", readyLimit)
	case errors.As(end, &exit) && exit.Exited():
		err = fmt.Errorf("%w; what it said is on standard error", end)
	case end != nil:
		err = end
	default:
		err = errors.New("it ended before it served")
	}
	n.done <- err
	close(n.gone)
}

// kill ends it at once. One that has ended is as good.
func (n *successor) kill() { _ = n.cmd.Process.Kill() }

// await waits for the end of a successor that was told to end, at most for
// patience or until another signal to stop comes. It may have begun to serve
// just now, and has clients then.
func (n *successor) await(patience time.Duration, signals <-chan os.Signal) {
	limit := time.After(patience)
	for {
		select {
		case <-n.gone:
			return
		case err := <-n.done:
			if err == nil {
				return // it serves, and stops as the signal tells it
			}
		case sig := <-signals:
			if sig != syscall.SIGTERM && sig != syscall.SIGINT {
				continue
			}
			n.kill()
		case <-limit:
			n.kill()
		}
	}
}

// startHandover starts a successor, unless one is being started.
func (s *supervisor) startHandover() {
	log := s.gate.log
	switch {
	case s.successor != nil:
		log.Warn("already handing over", "pid", s.successor.pid())
		return
	case !s.isOpen:
		log.Info("to be handed over once the gate is open")
		s.handOver = true
		return
	}
	if err := s.gate.hits.Save(); err != nil { // it reads them when it starts
		log.Warn("hits are not kept", "error", err)
	}
	n, err := startSuccessor(s.program, slices.Concat(s.gate.held, s.gate.adminEnd().held()))
	if err != nil {
		log.Error("not handed over, this process goes on", "program", s.program, "error", err)
		return
	}
	s.successor, s.succeeded = n, n.done
	log.Info("handing over", "pid", n.pid(), "program", s.program)
}

// goOn gives a successor up that has failed.
func (s *supervisor) goOn(err error) {
	s.gate.log.Error("not handed over, this process goes on", "pid", s.successor.pid(), "error", err)
	s.successor, s.succeeded = nil, nil
	s.gate.keepSocket()
}

// retire ends the gate in good order now that its successor serves. To systemd the
// service does not stop: it goes on with another main process, which systemd
// believes only the present one (NotifyAccess=main), and so it is said here.
func (s *supervisor) retire() error {
	n := s.successor
	s.gate.logEnd.Reopen() // a log file may have been moved away before SIGUSR2
	s.gate.log.Info("handed over", "pid", n.pid())
	daemon.SdNotify(false, fmt.Sprintf("MAINPID=%d\n%s", n.pid(), daemon.SdNotifyReady))
	if n.reload {
		if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			s.gate.log.Warn("passing SIGHUP on", "pid", n.pid(), "error", err)
		}
	}
	if s.working != nil {
		s.working()
		<-s.done
	}
	return s.gate.retire(s.ctx, s.signals)
}

// retire takes no more clients, lets those there are go on for a while, and then
// is a shutdown.
func (g *gate) retire(ctx context.Context, signals <-chan os.Signal) error {
	for _, s := range g.held {
		if err := s.Listener.Close(); err != nil {
			g.log.Warn("closing a socket that was handed over", "error", err)
		}
	}
	if m := g.adminEnd().metrics; m != nil {
		if err := m.retire(); err != nil {
			g.log.Warn("closing a socket that was handed over", "error", err)
		}
	}
	grace := time.After(min(retirementGrace, g.config.Listen.ShutdownTimeout))
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
