// Package gate is the daemon: it starts, serves, reloads, hands over and stops.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"spamgate/internal/config"
	"spamgate/internal/logging"
	"spamgate/internal/recipients"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/partial"
)

// Serve runs the gate with the configuration in a file, until a signal ends it.
func Serve(ctx context.Context, file string, stderr *logging.Writer) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	boundGarbage()
	program := programFile()
	in, err := socket.Inherit()
	if err != nil {
		return err
	}
	return serve(ctx, file, stderr, in, program, Edges{Signals: signals})
}

// serve does the work of Serve.
func serve(ctx context.Context, file string, stderr *logging.Writer, in *socket.Inherited, program string, edges Edges) (err error) {
	defer func() {
		if err != nil {
			in.Fail(err)
		}
	}()

	c, err := config.Load(file)
	if err != nil {
		return err
	}
	if err := setup.CheckFiles(c); err != nil {
		return err
	}
	g, err := newGate(ctx, c, in, stderr, edges)
	if err != nil {
		return err
	}
	defer g.close()
	s := &supervisor{ctx: ctx, gate: g, file: file, signals: edges.Signals, inherited: in, program: program}
	return s.run()
}

// gate is the running daemon.
type gate struct {
	config *config.Config // in use; nil before the first apply has ended
	stderr *logging.Writer
	log    *slog.Logger
	logEnd *logging.Log
	show   func(address string) string // writes addresses for the log

	parts []part            // in the order of makeParts; the fields below belong to them
	in    *socket.Inherited // from a predecessor; nil: there is none
	edges Edges

	*lists
	history      *history // of decisions
	hops         nextHops
	memory       *partial.Store     // which recipients have which message; nil before a next hop speaks LMTP
	recipients   []*recipients.File // that change while the gate runs
	consoleCerts *tableCerts
	publishCerts *tableCerts
	publisher    *publisher
	listeners    listeners
	doors        doors
	fleet        *fleetPart
	admin        *adminPart

	server  *smtpfilter.Server
	metrics *metrics
	answers *adminHandler // answers requests on the admin socket
	served  chan error    // receives the failure of a listener
}

// newGate creates all parts, and opens no listener.
func newGate(ctx context.Context, c *config.Config, in *socket.Inherited, stderr *logging.Writer, edges Edges) (g *gate, err error) {
	g = &gate{stderr: stderr, in: in, edges: edges, served: make(chan error, 1), metrics: newMetrics()}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.logEnd, err = setup.OpenLog(c, stderr); err != nil {
		return g, err
	}
	g.log = g.logEnd.Logger
	slog.SetDefault(g.log) // and package log's, for libraries that write to it
	g.metrics.addLog(func() uint64 { return g.logEnd.Dropped() + stderr.Dropped() })
	warning, err := setup.CheckState(c, true)
	if err != nil {
		return g, err
	}
	if warning != "" {
		g.log.Warn("others may write to the state directory", "problem", warning)
	}
	if g.show, err = setup.ShowAddress(c); err != nil {
		return g, err
	}
	g.makeParts(c)
	if err := g.apply(ctx, c); err != nil {
		return g, err
	}
	g.metrics.registry.MustRegister(gateCollector{g.answers}, &stateCollector{gate: g.answers}, g.history, g.fleet)
	return g, nil
}

// open opens the listeners once that is known to be safe, and announces it.
func (g *gate) open(ctx context.Context) error {
	if err := checkPublic(ctx, g.config, g.listeners, g.hops, waitingToOpen, g.log); err != nil {
		return err
	}
	g.hops.learnOffers(ctx)
	if err := g.makeDoors(ctx); err != nil {
		return err
	}
	if err := g.openSockets(); err != nil {
		return errors.Join(err, g.closeSockets())
	}
	if err := g.admin.begin(); err != nil {
		return errors.Join(err, g.closeSockets())
	}
	for _, e := range g.listeners {
		for _, l := range e.open {
			if err := g.listen(e, l); err != nil {
				return err
			}
		}
	}
	g.answers.open.Store(&openAddresses{g.listeners.addresses(), g.doors.addresses(), g.doors.sockets()})
	g.announce()
	for _, e := range g.listeners {
		for _, port := range e.ports {
			go g.serve(port.Serve)
		}
	}
	for _, d := range g.doors {
		g.serveDoor(d)
	}
	g.publisher.start(g.store, g.in != nil)
	g.store.Listening()
	g.history.begin()
	return nil
}

// openSockets opens the sockets of all listeners and doors. After an error some are open.
func (g *gate) openSockets() error {
	for _, e := range g.listeners {
		if err := e.openSockets(g.config, g.edges.Listen); err != nil {
			return err
		}
	}
	for _, d := range g.doors {
		if err := d.openSockets(g.config); err != nil {
			return err
		}
	}
	return nil
}

// closeSockets closes the sockets of all listeners and doors, which nobody serves yet.
func (g *gate) closeSockets() error {
	return errors.Join(g.doors.close(), g.listeners.release())
}

// heldSockets returns the sockets for a successor.
func (g *gate) heldSockets() []socket.Inheritable {
	return slices.Concat(g.listeners.held(), g.doors.held(), g.admin.servers().held())
}

// serve runs a function that accepts clients on a socket.
func (g *gate) serve(accept func() error) {
	if err := accept(); err != nil {
		select {
		case g.served <- err:
		default: // the first failure ends the gate already
		}
	}
}

// shutdown drains and stops the gate. A second signal ends the wait.
func (g *gate) shutdown(ctx context.Context, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, g.config.Listen.ShutdownTimeout)
	defer cancel()
	g.answers.open.Store(nil)
	done := make(chan error, 1)
	go func() { done <- g.drain(ctx) }()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				g.log.Warn("stopped before all mail was finished; its clients try again", "error", err)
				err = otherErrors(err, ctx.Err())
			}
			g.logState("stopped")
			return err
		case s := <-signals:
			switch s {
			case syscall.SIGHUP:
				g.logEnd.Reopen()
			case syscall.SIGTERM, syscall.SIGINT:
				g.log.Info("stopping at once", "signal", s.String())
				cancel()
			}
		}
	}
}

// otherErrors returns the joined errors that are not the expected one.
func otherErrors(err, expected error) error {
	if err == expected {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var others []error
	for _, e := range joined.Unwrap() {
		others = append(others, otherErrors(e, expected))
	}
	return errors.Join(others...)
}

// close closes the parts, the last one first. It logs errors and returns none: every client has its
// reply by then, so that stopping has not failed because of a full disk, say.
func (g *gate) close() {
	for _, p := range slices.Backward(g.parts) {
		if err := call(p.close); err != nil {
			g.log.Warn("stopped, but not in order", "part", p.name, "error", err)
		}
	}
	if g.logEnd != nil {
		g.logEnd.Close()
	}
}

// logState logs the state of the lists and the filter. The number of goroutines shows the
// load: each connection has one, and the gate some.
func (g *gate) logState(text string) {
	set := g.store.Set()
	s := set.Stats()
	attrs := []any{
		"generation", s.Generation,
		"entries", s.Entries,
		"invalid", s.Invalid,
		"filter", report.DescribeFilter(s),
		"fill_ratio", threeDigits(s.FillRatio),
		"lookups", set.Lookups(),
		"maybes", set.Maybes(),
	}
	if !s.Unprobed { // else it is not known yet
		attrs = append(attrs, "expected_fpr", threeDigits(s.FPR))
	}
	if g.config.Filter.Confirm { // else it is not known
		attrs = append(attrs, "false_positives", set.FalsePositives())
	}
	g.log.Info(text, append(attrs, "goroutines", runtime.NumGoroutine())...)
	if s.Warning != "" {
		g.log.Warn(s.Warning)
	}
	for _, l := range s.Lists {
		if l.Err != nil {
			serving := "nothing"
			if !l.Loaded.IsZero() {
				serving = l.Loaded.Format(time.RFC3339)
			}
			g.log.Warn("list not up to date", "list", l.Name, "serving", serving, "error", l.Err)
		}
	}
	g.lists.logDNS(g.config)
}

// threeDigits rounds to three significant digits.
func threeDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}
