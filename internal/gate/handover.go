package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"spamgate/internal/admin"
	"spamgate/internal/version"
)

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
	start := startSuccessor
	if s.gate.edges.Successor != nil {
		start = s.gate.edges.startSuccessor
	}
	n, err := start(ctx, limit, s.program, s.gate.heldSockets())
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
	s.gate.admin.keepSocket()
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

// retire stops accepting clients, lets the present ones go on for the grace period, and then
// shuts down.
func (g *gate) retire(ctx context.Context, signals <-chan os.Signal) error {
	g.answers.open.Store(nil)
	go g.fleet.close() // the successor waits for it; g.close does so, too
	// The successor has copies of the listening sockets.
	if err := errors.Join(g.doors.release(), g.listeners.release(), g.admin.servers().retire()); err != nil {
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

// handoverRequest is a request on the admin socket for a handover. Its methods do nothing on
// nil, which stands for SIGUSR2.
type handoverRequest struct {
	ctx   context.Context // ends when nobody waits any more
	limit time.Duration   // until the successor must serve
	began time.Time
	done  chan<- handoverResult // has room for the result
}

// handoverResult is the answer to a handoverRequest.
type handoverResult struct {
	admin.HandedOver
	err error
}

// Handover implements admin.Gate.
func (g *adminHandler) Handover(ctx context.Context, limit time.Duration) (admin.HandedOver, error) {
	if limit == 0 {
		limit = readyLimit
	}
	done := make(chan handoverResult, 1)
	select {
	case g.handovers <- &handoverRequest{ctx, limit, time.Now(), done}:
		r := <-done
		return r.HandedOver, r.err
	case <-g.ending:
		return admin.HandedOver{}, errEnding
	case <-ctx.Done():
		return admin.HandedOver{}, ctx.Err()
	}
}

var errEnding = fmt.Errorf("%w any more: it is ending", admin.ErrNotRunning)

// fail answers that this process continues, or ends without a successor.
func (r *handoverRequest) fail(err error) {
	if r != nil {
		r.done <- handoverResult{err: err}
	}
}

// succeed answers that the process pid serves.
func (r *handoverRequest) succeed(pid int, g *gate) {
	if r == nil {
		return
	}
	r.done <- handoverResult{HandedOver: admin.HandedOver{
		Old:        admin.Process{PID: os.Getpid(), Version: version.Number},
		New:        admin.Process{PID: pid},
		Seconds:    time.Since(r.began).Seconds(),
		Sessions:   g.metrics.openSessions.Load(),
		EndsWithin: (g.retirementGrace() + g.config.Listen.ShutdownTimeout).Seconds(),
	}}
}
