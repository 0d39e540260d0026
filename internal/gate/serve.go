// Package gate is the daemon: it starts, serves, reloads, hands over and stops.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"spamgate/blocklist/hits"
	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/fetch"
	"spamgate/internal/logging"
	"spamgate/internal/managed"
	"spamgate/internal/proof"
	"spamgate/internal/recipients"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname"
	"spamgate/smtpfilter/partial"
)

// Serve runs the gate with the configuration in a file, until a signal ends it.
func Serve(ctx context.Context, file string, stderr *logging.Writer) (err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	boundGarbage()
	program := programFile()
	in, err := socket.Inherit()
	if err != nil {
		return err
	}
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
	g, err := newGate(ctx, c, in, stderr)
	if err != nil {
		return err
	}
	defer g.close()
	s := &supervisor{ctx: ctx, gate: g, file: file, signals: signals, inherited: in, program: program}
	return s.run()
}

// gate is the running daemon.
type gate struct {
	config  *config.Config
	stderr  *logging.Writer
	log     *slog.Logger
	logEnd  *logging.Log
	store   *store.Store
	editor  *managed.Editor
	fetcher *fetch.Fetcher
	fleet   *fleetPart
	hops    nextHops

	recipients []*recipients.File // that change while the gate runs

	memory *partial.Store // which recipients have which message; nil before a next hop speaks LMTP
	names  *clientname.Names
	dns    *dnslist.Client // asks the lists in DNS
	proofs *proof.Proofs   // proves senders for allow lists
	server *smtpfilter.Server
	show   func(address string) string // writes addresses for the log

	hits    *hits.Log
	history *history // of decisions
	metrics *metrics
	answers *adminHandler                // answers requests on the admin socket
	admin   atomic.Pointer[adminServers] // nil until they are open

	starting *admin.Server // the admin socket of a gate that waits for its fleet; nil: there is none

	webPassed [webServers]socket.DoorAddr // where they are to be opened, or are open
	takesOver bool                        // there is a predecessor

	accounts     *accounts.Store // of the console
	consoleCerts *certs.Reloader // nil without TLS

	publisher    *publisher
	publishCerts *certs.Reloader // nil without TLS

	served chan error // receives the failure of a listener

	listeners []*runningListener
	doors     []*runningDoor
}

// newGate creates all parts, and opens no listener.
func newGate(ctx context.Context, c *config.Config, in *socket.Inherited, stderr *logging.Writer) (g *gate, err error) {
	g = &gate{config: c, stderr: stderr, served: make(chan error, 1), metrics: newMetrics()}
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
	lists, err := setup.BlocklistConfig(c, g.log)
	if err != nil {
		return g, err
	}
	sources, err := setup.FetchSources(c.Lists)
	if err != nil {
		return g, err
	}
	if g.recipients, err = openRecipients(c, nil, g.log); err != nil {
		return g, err
	}
	if g.listeners, err = newListeners(c, in, g.log); err != nil {
		return g, err
	}
	if g.doors, err = newDoors(c, in); err != nil {
		return g, err
	}
	g.takesOver = in != nil
	for i, kind := range webKinds {
		if kind.addr(c) == "" {
			continue
		}
		if g.webPassed[i], err = kind.resolve(c, in); err != nil {
			return g, err
		}
	}
	if err := in.CloseRest(); err != nil {
		return g, err
	}
	if err := socket.CheckPassed(c); err != nil {
		return g, err
	}
	if err := setup.CheckLoop(c, allSockets(g.listeners)); err != nil {
		return g, err
	}
	if err := managed.Make(c); err != nil {
		return g, err
	}
	if g.consoleCerts, err = g.consoleCertificates(c); err != nil {
		return g, err
	}
	if g.publishCerts, err = g.publishCertificates(c); err != nil {
		return g, err
	}
	publishing, err := setup.OpenPublish(c)
	if err != nil {
		return g, err
	}
	g.accounts = accounts.Open(setup.ConsoleDir(c))
	g.metrics.addConsole(g.accounts.Attempts)
	g.history = openHistory(c, g.log)
	g.hits = hits.New(hits.Options{Dir: c.State.Dir, Name: report.HitsName, Logger: g.log})
	lists.OnHit = g.hits.Record
	lists.StoredFirst = in == nil // the predecessor may serve something newer
	g.answers = &adminHandler{handovers: make(chan *handoverRequest), ending: make(chan struct{})}
	g.answers.now.Store(&activeConfig{config: c})
	g.fleet = newFleetPart(func() *config.Config { return g.answers.now.Load().config }, g.log)
	if !g.takesOver { // else the predecessor is the member, and has the lists
		g.fleet.awaitFirst(ctx, c, g.openStarting)
	}
	unfetched := setup.FirstLoad(ctx, c, g.log, stderr)
	if g.store, err = store.Open(ctx, lists); err != nil {
		return g, errors.Join(unfetched, setup.PlaceLists(c, err))
	}
	g.startHits(c)
	g.fetcher = setup.StartSources(nil, g.log)
	if g.hops, err = openHops(c, nil, g.log, g.metrics); err != nil {
		return g, err
	}
	g.openMemory(c)
	if g.dns, err = setup.OpenDNS(c, g.log); err != nil {
		return g, err
	}
	if g.proofs, err = setup.OpenProofs(c, g.log); err != nil {
		return g, err
	}
	g.names = clientname.New(nil)
	g.server = smtpfilter.New(smtpfilter.Config{
		Hostname:    c.Hostname,
		ID:          setup.PathID,
		Names:       g.names,
		Log:         g.log,
		ShowAddress: g.show,
		History:     g.history,
		Meter:       g.metrics,
	})
	g.publisher = newPublisher(g.store, c, publishing, g.log)
	g.answers.started, g.answers.store, g.answers.dns, g.answers.fetcher, g.answers.hits = time.Now(), g.store, g.dns, g.fetcher, g.hits
	g.answers.history, g.answers.publisher, g.answers.fleet = g.history, g.publisher, g.fleet
	g.editor = managed.New(func() *config.Config { return g.answers.now.Load().config }, g.store)
	g.answers.now.Store(&activeConfig{c, g.hops, g.certificates(), g.recipients})
	g.joinFleet(c, sources)
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
	end, err := g.openAdmin(g.config, g.adminServers(), g.takesOver) // a reload before this may have opened some
	if err != nil {
		return errors.Join(err, g.closeSockets())
	}
	g.replaceAdmin(end)
	for _, e := range g.listeners {
		for _, l := range e.open {
			if err := g.listen(e, l); err != nil {
				return err
			}
		}
	}
	g.answers.open.Store(&openAddresses{g.addresses(), g.doorAddresses(), g.doorSockets()})
	g.announce()
	for _, e := range g.listeners {
		for _, port := range e.ports {
			go g.serve(port.Serve)
		}
	}
	for _, d := range g.doors {
		g.serveDoor(d)
	}
	g.publisher.start(g.takesOver)
	g.store.Listening()
	g.history.begin()
	return nil
}

// openSockets opens the sockets of all listeners and doors. After an error some are open.
func (g *gate) openSockets() error {
	for _, e := range g.listeners {
		if err := e.openSockets(g.config); err != nil {
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
	errs := []error{g.closeDoors()}
	for _, e := range g.listeners {
		for _, l := range e.open {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// heldSockets returns the sockets for a successor.
func (g *gate) heldSockets() []socket.Inheritable {
	var held []socket.Inheritable
	for _, e := range g.listeners {
		for i, l := range e.open {
			held = append(held, socket.Inheritable{Key: e.sockets[i].Key, Socket: l})
		}
	}
	for _, d := range g.doors {
		held = append(held, d.open.Inheritable()...)
	}
	return append(held, g.adminServers().held()...)
}

// startHits begins to record matches of lists that are new.
func (g *gate) startHits(c *config.Config) {
	if key, ok := report.HitsKey(g.store.Set()); ok && c.Filter.Confirm {
		g.hits.Start(key, setup.ListNames(c.Lists))
	}
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

// close closes what newGate has opened. It logs errors and returns none: every client has its
// reply by then, so that stopping has not failed because of a full disk, say.
func (g *gate) close() {
	g.closeStarting()
	g.closing("the admin socket", g.adminServers().close())
	g.closing("the doors", g.closeDoors())
	g.closing("the console's certificates", closeOther(g.consoleCerts, nil))
	if g.publisher != nil {
		g.publisher.stop()
	}
	g.closing("the certificates for published lists", closeOther(g.publishCerts, nil))
	if g.accounts != nil {
		g.accounts.Close()
	}
	if g.fleet != nil {
		g.fleet.close()
	}
	if g.hits != nil {
		g.closing("what matched since the hits were last written", g.hits.Close())
	}
	if g.fetcher != nil {
		g.fetcher.Close()
	}
	if g.store != nil {
		g.closing("the lists", g.store.Close())
	}
	if g.names != nil {
		g.names.Close()
	}
	if g.dns != nil {
		g.dns.Close()
	}
	g.closing("the next hop", g.hops.discard(nil))
	g.closing("the files with recipients", closeRecipients(g.recipients, nil))
	if g.memory != nil {
		g.memory.Close()
	}
	g.closing("the certificates", closeListeners(g.listeners))
	if g.history != nil {
		g.history.close()
	}
	if g.logEnd != nil {
		g.logEnd.Close()
	}
}

// closing logs an error in closing one part.
func (g *gate) closing(part string, err error) {
	if err != nil {
		g.log.Warn("stopped, but not in order", "part", part, "error", err)
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
	g.logDNSLists()
}

// threeDigits rounds to three significant digits.
func threeDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}
