package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"spamgate/blocklist/hits"
	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname"
)

// part is a part of the gate. All have one life cycle, at the start and at each reload: see apply.
// A part may use those before it.
type part struct {
	name string // in the log

	// prepare makes what a configuration needs, and changes nothing that serves. The
	// configuration was is in use; nil: the gate starts.
	prepare func(ctx context.Context, was, c *config.Config) (change, error)

	close func() error // closes what the part has installed, if anything
}

// change is what a part has prepared. Functions that have nothing to do are nil.
type change struct {
	load    func(context.Context) error // may fail, and cannot be undone: only one part has it
	commit  func()                      // installs what was prepared
	discard func() error                // closes it instead
	retire  func() error                // closes what it has replaced, which no part uses any more
}

// closer is what a change replaces; nil: nothing.
type closer interface {
	comparable
	Close() error
}

// replacement returns the change from old to now, which may have some of old.
func replacement[T closer](old, current []T, commit func()) change {
	return change{
		commit:  commit,
		discard: func() error { return closeOthers(current, old) },
		retire:  func() error { return closeOthers(old, current) },
	}
}

// closeOthers closes those that kept does not have.
func closeOthers[T closer](all, kept []T) error {
	var none T
	var errs []error
	for _, c := range all {
		if c != none && !slices.Contains(kept, c) {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// makeParts makes the parts in their order. They have nothing yet.
func (g *gate) makeParts(c *config.Config) {
	names := clientname.New(g.edges.Dial)
	store := accounts.Open(setup.ConsoleDir(c))
	g.metrics.addConsole(store.Attempts)
	g.history = openHistory(c, g.log)
	g.lists = &lists{gate: g, hits: hits.New(hits.Options{Dir: c.State.Dir, Name: report.HitsName, Logger: g.log})}
	g.consoleCerts = &tableCerts{table: "console", log: g.log, keys: func(c *config.Config) (string, config.Files, config.Files) {
		return c.Console.Addr, c.Console.TLSCert, c.Console.TLSKey
	}}
	g.publishCerts = &tableCerts{table: "publish", log: g.log, keys: func(c *config.Config) (string, config.Files, config.Files) {
		return c.Publish.Addr, c.Publish.TLSCert, c.Publish.TLSKey
	}}
	g.publisher = newPublisher(g.log)
	g.answers = &adminHandler{
		lists: g.lists, history: g.history, publisher: g.publisher,
		started: time.Now(), handovers: make(chan *handoverRequest), ending: make(chan struct{}),
	}
	g.answers.current.Store(&activeConfig{config: c})
	g.fleet = newFleetPart(func() *config.Config { return g.answers.current.Load().config }, g.log)
	g.fleet.lists, g.fleet.history, g.fleet.accounts, g.fleet.problem = g.lists, g.history, store, g.answers.mailProblem
	store.Join(accountsFleet{g.fleet})
	g.answers.fleet = g.fleet
	g.admin = &adminPart{gate: g, accounts: store}
	g.server = smtpfilter.New(smtpfilter.Config{
		Hostname: c.Hostname, ID: setup.PathID, Names: names,
		Log: g.log, ShowAddress: g.show, History: g.history, Meter: g.metrics,
	})
	g.parts = []part{
		{"the history of decisions", g.history.prepare, g.history.close},
		{"the record of delivered recipients", nil, g.closeMemory},
		{"the files with recipients", g.prepareRecipients, func() error { return closeOthers(g.recipients, nil) }},
		{"the next hop", g.prepareHops, func() error { return closeOthers(g.hops.targets(), nil) }},
		{"the names of clients", nil, func() error { names.Close(); return nil }},
		{"the console's certificates", g.consoleCerts.prepare, g.consoleCerts.close},
		{"the certificates for published lists", g.publishCerts.prepare, g.publishCerts.close},
		{"the lists", g.lists.prepare, g.lists.close},
		{"published lists", g.publisher.prepare, g.publisher.close},
		{"the certificates", g.prepareListeners, func() error { return closeOthers(g.listeners.certs(), nil) }},
		{"the doors", g.prepareDoors, func() error { return g.doors.close() }},
		{"the configuration that others read", g.prepareAnswers, nil},
		{"the fleet", g.fleet.prepare, g.fleet.close},
		{"accounts", nil, func() error { store.Close(); return nil }},
		{"the admin socket", g.admin.prepare, g.admin.close},
	}
}

// apply makes the gate use a configuration: each part prepares what it needs, then the lists are
// loaded, and nothing after that can fail. After an error all is as before.
func (g *gate) apply(ctx context.Context, c *config.Config) error {
	var changes []change
	var err error
	for _, p := range g.parts {
		if p.prepare == nil || err != nil {
			continue
		}
		var ch change
		if ch, err = p.prepare(ctx, g.config, c); err == nil {
			changes = append(changes, ch)
		}
	}
	for _, ch := range changes {
		if ch.load != nil && err == nil {
			err = ch.load(ctx)
		}
	}
	if err != nil {
		for _, ch := range slices.Backward(changes) {
			err = errors.Join(err, call(ch.discard))
		}
		return err
	}
	g.config = c
	for _, ch := range changes {
		if ch.commit != nil {
			ch.commit()
		}
	}
	for _, ch := range changes {
		if err := call(ch.retire); err != nil {
			g.log.Warn("closing what a reload has replaced", "error", err)
		}
	}
	return nil
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}
