package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/logging"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
)

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gate",
		Long: `Run the gate until SIGTERM or SIGINT: it then takes no more clients, lets open
transactions finish ([listen] shutdown_timeout), and exits with 0. A second one
ends the wait, except for a message that the next hop has and not answered for.

SIGHUP reads the configuration and the lists again; a configuration with an
error changes nothing. SIGUSR1 logs the state of the lists and the filter.`,
		Args: cobra.NoArgs,
	}
	file := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return serve(cmd.Context(), *file, cmd.ErrOrStderr())
	}
	return cmd
}

// serve runs the gate.
func serve(ctx context.Context, file string, stderr io.Writer) (err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)

	c, err := config.Load(file)
	if err != nil {
		return err
	}
	g, err := newGate(ctx, c, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s := &supervisor{ctx: ctx, gate: g, file: file, signals: signals}
	return s.run()
}

// gate is everything that runs.
type gate struct {
	config  *config.Config
	stderr  io.Writer
	log     *slog.Logger
	logEnd  io.Closer
	store   *blocklist.Store
	next    nexthop.Target
	server  *smtpfilter.Server
	sockets []endpoint
	served  chan error // a listener failed
}

// newGate makes all parts, and opens nothing.
func newGate(ctx context.Context, c *config.Config, stderr io.Writer) (g *gate, err error) {
	g = &gate{config: c, stderr: stderr, served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.log, g.logEnd, err = newLogger(c, stderr); err != nil {
		return g, err
	}
	show, err := showAddress(c)
	if err != nil {
		return g, err
	}
	lists, err := blocklistConfig(c, g.log)
	if err != nil {
		return g, err
	}
	if g.sockets, err = endpoints(c.Listen.Addr); err != nil {
		return g, err
	}
	if err := checkLoop(c, g.sockets); err != nil {
		return g, err
	}
	if g.store, err = blocklist.Open(ctx, lists); err != nil {
		return g, err
	}
	if g.next, err = newNextHop(c, g.log); err != nil {
		return g, err
	}
	g.server = smtpfilter.New(smtpfilter.Config{
		Wire:        wireConfig(c),
		Checker:     checker{g.store},
		Settings:    smtpfilter.Settings{NextHop: g.next, Policy: policy(c)},
		Resolver:    net.DefaultResolver,
		Log:         g.log,
		ShowAddress: show,
	})
	return g, nil
}

// newLogger makes the logger that the configuration asks for.
func newLogger(c *config.Config, stderr io.Writer) (*slog.Logger, io.Closer, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, nil, err
	}
	return logging.New(logging.Options{
		Output: c.Log.Output,
		Format: c.Log.Format,
		Level:  level,
		Stderr: stderr,
	})
}

// showAddress is how the log writes addresses. A hash is that of the normal
// form, so that however an address is written its lines belong together.
func showAddress(c *config.Config) (func(string) string, error) {
	r, err := logging.NewRedactor(c.Log.Addresses, c.State.Dir)
	if err != nil {
		return nil, err
	}
	if c.Log.Addresses != "hash" {
		return r.Address, nil
	}
	return func(address string) string {
		if a, err := sender.Parse(address); err == nil {
			address = a.String()
		}
		return r.Address(address)
	}, nil
}

// open lets clients in, once it is sure that it may, and says so.
func (g *gate) open(ctx context.Context) error {
	if err := checkPublic(ctx, g.config, g.sockets, g.next, g.log); err != nil {
		return err
	}
	var listeners []net.Listener
	for _, e := range g.sockets {
		l, err := e.listen()
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return err
		}
		listeners = append(listeners, l)
	}
	g.announce(listeners)
	for _, l := range listeners {
		go func() {
			if err := g.server.Serve(l); err != nil {
				select {
				case g.served <- err:
				default: // the first failure ends the gate already
				}
			}
		}()
	}
	return nil
}

// shutdown ends the gate in good order. A second signal ends its patience.
func (g *gate) shutdown(ctx context.Context, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, g.config.Listen.ShutdownTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- g.server.Shutdown(ctx) }()
	for {
		select {
		case err := <-done:
			g.logState("stopped")
			return err
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				g.log.Info("stopping at once", "signal", s.String())
				cancel()
			}
		}
	}
}

// close gives up what newGate has made.
func (g *gate) close() error {
	var errs []error
	if g.store != nil {
		errs = append(errs, g.store.Close())
	}
	if g.next != nil {
		errs = append(errs, g.next.Close())
	}
	if g.logEnd != nil {
		errs = append(errs, g.logEnd.Close())
	}
	return errors.Join(errs...)
}

// logState is a line about the lists and the filter.
func (g *gate) logState(text string) {
	set := g.store.Set()
	s := set.Stats()
	g.log.Info(text,
		"generation", s.Generation,
		"entries", s.Entries,
		"invalid", s.Invalid,
		"fill_ratio", threeDigits(s.FillRatio),
		"expected_fpr", threeDigits(s.FPR),
		"lookups", set.Lookups(),
		"maybes", set.Maybes(),
		"false_positives", set.FalsePositives())
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
}

// threeDigits rounds to what is of interest.
func threeDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// reload reads configuration and lists again. Whatever is wrong, nothing
// changes then.
func (g *gate) reload(ctx context.Context, file string) {
	c, err := config.Load(file)
	if err == nil {
		err = g.apply(ctx, c)
	}
	if err != nil {
		g.log.Error("reload failed, nothing has changed", "error", err)
		return
	}
	g.logState("reloaded")
}

// apply changes the running gate to a configuration.
func (g *gate) apply(ctx context.Context, c *config.Config) error {
	for _, key := range restartKeys(g.config, c) {
		g.log.Warn("this change needs a restart", "key", key)
	}
	c.Hostname, c.Log, c.State = g.config.Hostname, g.config.Log, g.config.State
	c.Listen.Addr, c.Listen.MaxMessageBytes = g.config.Listen.Addr, g.config.Listen.MaxMessageBytes
	lists, err := blocklistConfig(c, g.log)
	if err != nil {
		return err
	}
	if err := checkLoop(c, g.sockets); err != nil {
		return err
	}
	next := g.next
	if c.NextHop != g.config.NextHop {
		if next, err = newNextHop(c, g.log); err != nil {
			return err
		}
	}
	discard := func(err error) error {
		if next != g.next {
			err = errors.Join(err, next.Close())
		}
		return err
	}
	// A next hop that does not answer now must not hold the gate up; that it
	// relays must be known before it is used without recipient_domains.
	checking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := checkPublic(checking, c, g.sockets, next, g.log); err != nil {
		return discard(err)
	}
	if err := g.store.Reload(ctx, lists); err != nil {
		return discard(err)
	}
	// Wait for files that are being written just now. Lists that are held are
	// logged by the store, and serve their last good version.
	_ = g.store.Rescan(ctx)
	old := g.server.Apply(smtpfilter.Settings{NextHop: next, Policy: policy(c)})
	if old.NextHop != next {
		if err := old.NextHop.Close(); err != nil {
			g.log.Warn("closing the old next hop", "error", err)
		}
	}
	g.next = next
	g.config = c
	return nil
}

// restartKeys names the keys whose change a reload does not carry out.
func restartKeys(old, c *config.Config) []string {
	var keys []string
	for _, k := range []struct {
		key  string
		same bool
	}{
		{"hostname", old.Hostname == c.Hostname},
		{"listen.addr", fmt.Sprint(old.Listen.Addr) == fmt.Sprint(c.Listen.Addr)},
		{"listen.max_message_bytes", old.Listen.MaxMessageBytes == c.Listen.MaxMessageBytes},
		{"log", old.Log == c.Log},
		{"state.dir", old.State == c.State},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	return keys
}
