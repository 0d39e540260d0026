package gate

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"spamgate/internal/socket"
)

// supervisor opens the gate, and does what signals ask for. Opening and
// reloading may have to wait for the next hop, and signals are heard meanwhile;
// so they run beside, one of them at a time.
type supervisor struct {
	ctx     context.Context
	gate    *gate
	file    string
	signals <-chan os.Signal

	working context.CancelFunc // stops what runs beside; nil: nothing does
	done    chan error         // its end
	opening bool               // it is opening, else reloading

	isOpen   bool
	reload   bool // a reload was asked for and has not begun
	handOver bool // a handover was asked for before the gate was open

	inherited *socket.Inherited // from the process that this one takes over from
	program   string            // the file to start on SIGUSR2
	successor *successor        // is being started; nil: none is
	succeeded <-chan error      // its done
}

// run runs the gate until it is told to stop, or fails.
func (s *supervisor) run() error {
	s.startOpening()
	for {
		select {
		case err := <-s.done:
			if err := s.finished(err); err != nil {
				return err
			}
		case err := <-s.succeeded:
			if err == nil {
				return s.retire()
			}
			s.goOn(err)
		case err := <-s.gate.served:
			return errors.Join(err, s.stop())
		case sig := <-s.signals:
			switch sig {
			case syscall.SIGHUP:
				s.gate.logEnd.Reopen() // whatever becomes of the rest
				s.reload = true
				if s.successor != nil {
					s.successor.reload = true
				}
				if s.working == nil {
					s.startReload()
				} else if s.opening {
					s.working()
				}
			case syscall.SIGUSR1:
				s.gate.logState("state")
			case syscall.SIGUSR2:
				s.startHandover()
			default:
				s.gate.log.Info("stopping", "signal", sig.String())
				return s.stop()
			}
		}
	}
}

// start runs work beside.
func (s *supervisor) start(work func(context.Context) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	s.working, s.done = cancel, done
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

// finished goes on after what ran beside. An error of opening is one of the gate,
// unless it was stopped for a reload, which may mend what it waited for.
func (s *supervisor) finished(err error) error {
	s.working()
	s.working, s.done = nil, nil
	if s.opening {
		s.isOpen = err == nil
		if s.isOpen && s.handOver {
			s.startHandover()
		}
		if err != nil && !(s.reload && errors.Is(err, context.Canceled)) {
			return err
		}
	}
	switch {
	case s.reload:
		s.startReload()
	case s.isOpen:
		// Where this process takes over, the other one tells systemd.
		if !s.inherited.Ready() {
			daemon.SdNotify(false, daemon.SdNotifyReady)
		}
	default:
		s.startOpening()
	}
	return nil
}

// stop ends the gate in good order, and a successor that is being started.
func (s *supervisor) stop() error {
	daemon.SdNotify(false, daemon.SdNotifyStopping)
	if n := s.successor; n != nil {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		// The configuration may be changing until then.
		defer func() { n.await(s.gate.config.Listen.ShutdownTimeout, s.signals) }()
	}
	if s.working != nil {
		s.working()
		<-s.done
	}
	return s.gate.shutdown(s.ctx, s.signals)
}
