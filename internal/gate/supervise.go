package gate

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"spamgate/internal/socket"
)

// supervisor opens the gate and handles signals. Opening and reloading may have to wait for
// the next hop. They run in a goroutine, one at a time, so that signals are still handled.
type supervisor struct {
	ctx     context.Context
	gate    *gate
	file    string
	signals <-chan os.Signal

	cancel  context.CancelFunc // stops the work in progress; nil: there is none
	done    chan error         // the result of that work
	opening bool               // the work is opening the gate, else reloading it

	isOpen   bool
	reload   bool // a reload is due
	handOver bool // a handover is due as soon as the gate is open

	inherited *socket.Inherited // from the predecessor
	program   string            // the file to start on SIGUSR2
	successor *successor        // the one that is starting, or nil
	succeeded <-chan error      // its done channel
}

// run runs the gate until a signal stops it or it fails.
func (s *supervisor) run() error {
	s.startOpening()
	for {
		select {
		case err := <-s.done:
			if err := s.finished(err); err != nil {
				s.refuseRequests()
				return err
			}
		case err := <-s.succeeded:
			if err == nil {
				return s.retire()
			}
			s.abandonHandover(err)
		case err := <-s.gate.served:
			return errors.Join(err, s.stop())
		case asked := <-s.gate.answers.handovers:
			s.startHandover(asked)
		case sig := <-s.signals:
			switch sig {
			case syscall.SIGHUP:
				s.gate.logEnd.Reopen() // even if the reload fails
				s.reload = true
				if s.successor != nil {
					s.successor.reload = true
				}
				if s.cancel == nil {
					s.startReload()
				} else if s.opening {
					s.cancel()
				}
			case syscall.SIGUSR1:
				s.gate.logState("state")
			case syscall.SIGUSR2:
				s.startHandover(nil)
			default:
				s.gate.log.Info("stopping", "signal", sig.String())
				return s.stop()
			}
		}
	}
}

// start runs work in a goroutine.
func (s *supervisor) start(work func(context.Context) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	s.cancel, s.done = cancel, done
	go func() { done <- work(ctx) }()
}

func (s *supervisor) startOpening() {
	s.opening = true
	s.start(s.gate.open)
}

func (s *supervisor) startReload() {
	s.opening, s.reload = false, false
	daemon.SdNotify(false, daemon.SdNotifyReloading)
	s.start(func(ctx context.Context) error {
		s.gate.reload(ctx, s.file)
		return nil
	})
}

// finished continues after the work in progress has ended. An error of opening ends the gate,
// unless a reload has interrupted it.
func (s *supervisor) finished(err error) error {
	s.cancel()
	s.cancel, s.done = nil, nil
	if s.opening {
		s.isOpen = err == nil
		if s.isOpen && s.handOver {
			s.startHandover(nil)
		}
		if err != nil && !(s.reload && errors.Is(err, context.Canceled)) {
			return err
		}
	}
	switch {
	case s.reload:
		s.startReload()
	case s.isOpen:
		// In a handover the predecessor notifies systemd.
		before := s.inherited.Ready()
		s.gate.doors.own(s.gate.log)
		s.gate.admin.ownConsole()
		if !before {
			daemon.SdNotify(false, daemon.SdNotifyReady)
		}
	default:
		s.startOpening()
	}
	return nil
}

// refuseRequests answers the request in progress and all later ones that the gate is ending.
func (s *supervisor) refuseRequests() {
	close(s.gate.answers.ending)
	if s.successor != nil {
		s.successor.asked.fail(errEnding)
	}
}

// stop shuts the gate down, and a successor that is starting.
func (s *supervisor) stop() error {
	daemon.SdNotify(false, daemon.SdNotifyStopping)
	s.refuseRequests()
	if n := s.successor; n != nil {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have exited
		// The configuration is read at the end, since it may still change.
		defer func() { n.await(s.gate.config.Listen.ShutdownTimeout, s.signals) }()
	}
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
	return s.gate.shutdown(s.ctx, s.signals)
}
