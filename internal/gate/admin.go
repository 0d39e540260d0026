package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/managed"
	"spamgate/internal/recipients"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/internal/text"
	"spamgate/internal/version"
)

// adminHandler answers requests on the admin socket.
type adminHandler struct {
	*lists
	started   time.Time
	publisher *publisher
	history   *history
	fleet     *fleetPart
	current   atomic.Pointer[activeConfig]  // replaced by a reload
	open      atomic.Pointer[openAddresses] // nil before they are open, and once the gate stops

	handovers chan *handoverRequest // to the supervisor
	ending    chan struct{}         // closed when the supervisor takes no more of them
}

// openAddresses are the addresses where the gate takes clients.
type openAddresses struct {
	listeners []string
	doors     []admin.Door
	sockets   []*socket.OpenDoor // of the doors
}

// unreachable says which doors nobody can reach.
func (o *openAddresses) unreachable() []string {
	var problems []string
	for i, s := range o.sockets {
		if !s.InPlace() {
			problems = append(problems, fmt.Sprintf("nobody can reach %s: the file of its socket %s is gone; "+
				"spamgate handover or a restart makes it again", o.doors[i].Name, s.Addr()))
		}
	}
	return problems
}

// activeConfig is the configuration in use, with what was made from it.
type activeConfig struct {
	config       *config.Config
	hops         nextHops
	certificates []servedCertificates
	recipients   []*recipients.File
}

// prepareAnswers prepares what others read of a configuration (see part), after all that it tells about.
func (g *gate) prepareAnswers(_ context.Context, _, c *config.Config) (change, error) {
	return change{commit: func() { g.answers.current.Store(&activeConfig{c, g.hops, g.certificates(), g.recipients}) }}, nil
}

// recipientFile returns the file with recipients of a name, or nil.
func (g *adminHandler) recipientFile(name string) *recipients.File {
	files := g.current.Load().recipients
	if i := slices.IndexFunc(files, func(f *recipients.File) bool { return f.Spec().Name() == name }); i >= 0 {
		return files[i]
	}
	return nil
}

// Status implements admin.Gate.
func (g *adminHandler) Status() admin.Status {
	current, set := g.current.Load(), g.store.Set()
	s := report.Status(current.config, set.Stats())
	s.From = admin.FromGate
	s.Version, s.PID, s.Config, s.Started = version.Number, os.Getpid(), current.config.File, report.TimeOrNil(g.started)
	if file, err := filepath.Abs(s.Config); err == nil {
		s.Config = file
	}
	s.Generation = set.Generation()
	lookups, maybes := set.Lookups(), set.Maybes()
	s.Lookups, s.Maybes = &lookups, &maybes
	if current.config.Filter.Confirm { // else it is not known
		wrong := set.FalsePositives()
		s.FalseMaybes = &wrong
	}
	for i := range s.Lists {
		l := &s.Lists[i]
		if current.config.Filter.Confirm && l.DNS == nil {
			today := g.hits.Today(l.Name)
			l.HitsToday = &today
		}
		if l.URL != "" {
			l.Fetch = report.FetchStatus(g.fetcher.Status(l.Name))
		}
		l.Published = g.publisher.status(l.Name)
	}
	report.AddFetched(current.config, &s)
	report.AddDNS(&s, g.dns.Status())
	s.NextHops = current.hops.status(current.config)
	if open := g.open.Load(); open != nil {
		s.Doors = open.doors
	}
	s.Recipients = report.Recipients(current.recipients)
	s.Decisions = g.history.status()
	return s
}

// Generation implements admin.Gate.
func (g *adminHandler) Generation() uint64 { return g.store.Set().Generation() }

// Rescan implements admin.Gate.
func (g *adminHandler) Rescan(ctx context.Context) (admin.Rescanned, error) {
	err := g.store.Rescan(ctx)
	failed := lookAtRecipients(ctx, g.current.Load().recipients)
	set := g.store.Set()
	r := admin.Rescanned{Generation: set.Generation()}
	for _, f := range failed {
		r.Failed = append(r.Failed, admin.Failed{List: string(f.Kind), Error: f.Err.Error(), Held: true})
	}
	for _, l := range set.Stats().Lists {
		if l.Err != nil {
			r.Failed = append(r.Failed, admin.Failed{List: l.Name, Error: l.Err.Error(), Held: l.Held, Pinned: errors.Is(l.Err, store.ErrPinned)})
		}
	}
	// What is wrong with lists stands in Failed; anything else is an error.
	if err != nil && (len(r.Failed) == 0 || ctx.Err() != nil || errors.Is(err, store.ErrClosed)) {
		return r, err
	}
	return r, nil
}

// Accept implements admin.Gate.
func (g *adminHandler) Accept(ctx context.Context, by managed.By, name string, r admin.AcceptRequest) (done admin.Accepted, err error) {
	if f := g.recipientFile(name); f != nil {
		done, err = g.acceptRecipients(f)
	} else {
		done, err = g.acceptList(ctx, name, r.SHA256)
	}
	if err == nil && r.SHA256 == "" { // one with a sum is part of a change, whose author records it
		g.record(by.Record("accept", name, "", r.Why), done.What())
	}
	return done, err
}

func (g *adminHandler) acceptList(ctx context.Context, name, sum string) (admin.Accepted, error) {
	l, err := g.list(name)
	if err != nil {
		return admin.Accepted{}, err
	}
	before := l.Entries
	if err := g.shareAccept(ctx, l, sum); err != nil {
		return admin.Accepted{}, err
	}
	if sum != "" && sum != l.HeldSum { // it may not be there yet
		err = g.store.AcceptContent(name, sum)
	} else if _, err = report.HeldSum(l); err == nil {
		err = g.store.Accept(ctx, name)
	}
	if want := cmp.Or(sum, l.HeldSum); err == nil || want != "" {
		listStats, listErr := g.list(name)
		if listErr == nil && listStats.Sum == want { // perhaps since the fleet has told this gate, too
			err = nil
		}
		l, err = listStats, errors.Join(err, listErr)
	}
	if err != nil {
		return admin.Accepted{}, err
	}
	return admin.Accepted{Generation: g.Generation(), Entries: l.Entries, Before: before}, nil
}

// shareAccept accepts a content of a list on the other gates, if the list is shared; sum "" is
// the content that is held.
func (g *adminHandler) shareAccept(ctx context.Context, l blocklist.ListStats, sum string) error {
	if sum = cmp.Or(sum, l.HeldSum); sum == "" {
		return nil // nothing is held, as the caller finds out
	}
	return g.fleet.pins.share(ctx, stateAccept, l.Name, sharedAccept{sum})
}

// notAcceptable is the error of a version that is held and cannot be accepted.
type notAcceptable struct{ error }

// Is reports whether the admin socket has the same code for target.
func (notAcceptable) Is(target error) bool { return target == admin.ErrNothingHeld }

// acceptRecipients accepts a file with recipients that is held.
func (g *adminHandler) acceptRecipients(f *recipients.File) (admin.Accepted, error) {
	before := f.Status().Entries
	err := f.Accept()
	s := f.Status()
	switch {
	case errors.Is(err, recipients.ErrNothingHeld) && s.Err != nil:
		err = notAcceptable{fmt.Errorf("%s cannot be accepted as it is: %w; mend that first", s.Name(), s.Err)}
	case errors.Is(err, recipients.ErrNothingHeld):
		err = fmt.Errorf("%s: %w: what is on disk serves, with %s", s.Name(), admin.ErrNothingHeld, text.Count(s.Entries, "entry", "entries"))
	}
	return admin.Accepted{Generation: g.Generation(), Entries: s.Entries, Before: before}, err
}

// Pin implements admin.Gate.
func (g *adminHandler) Pin(ctx context.Context, by managed.By, name string, r admin.PinRequest) (admin.PinResult, error) {
	before, err := g.list(name)
	if err != nil {
		return admin.PinResult{}, err
	}
	record := by.Record("pin", name, "", r.Why)
	pin, err := g.store.Pin(ctx, name, blocklist.Pin{Sum: r.SHA256, Entries: r.Entries, Since: record.Time, Who: record.Person(), Why: r.Why})
	if err == nil {
		err = g.fleet.pins.changed(ctx, name, before.Pinned, &pin)
	}
	if err != nil {
		return admin.PinResult{}, err
	}
	return g.pinResult(record, &pin, before)
}

// Unpin implements admin.Gate.
func (g *adminHandler) Unpin(ctx context.Context, by managed.By, name string, r admin.UnpinRequest) (admin.PinResult, error) {
	before, err := g.list(name)
	if err != nil {
		return admin.PinResult{}, err
	}
	record := by.Record("unpin", name, "", r.Why)
	err = g.store.Unpin(ctx, name)
	if errors.Is(err, store.ErrNotPinned) {
		err = fmt.Errorf("list %s: %w", name, admin.ErrNotPinned)
	}
	if err == nil {
		err = g.fleet.pins.changed(ctx, name, before.Pinned, nil)
	}
	if err != nil {
		return admin.PinResult{}, err
	}
	return g.pinResult(record, nil, before)
}

// pinResult records a new pin, or the end of one, and returns what it has done.
func (g *adminHandler) pinResult(record *listedit.Record, pin *blocklist.Pin, before blocklist.ListStats) (admin.PinResult, error) {
	name := before.Name
	g.record(record, report.Pinned(pin).What())
	l, err := g.list(name)
	if err != nil {
		return admin.PinResult{}, err
	}
	r := admin.PinResult{Generation: g.Generation(), Entries: l.Entries, Before: before.Entries, Pinned: report.Pinned(l.Pinned)}
	if l.Err != nil && !errors.Is(l.Err, store.ErrPinned) {
		r.Error = l.Err.Error()
	}
	return r, nil
}

// list returns the statistics of a list in use.
func (g *adminHandler) list(name string) (blocklist.ListStats, error) {
	return report.FindStats(g.store.Set(), name)
}

// Unused implements admin.Gate.
func (g *adminHandler) Unused(ctx context.Context, name string, since time.Time, here bool, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error) {
	c, set := g.current.Load().config, g.store.Set()
	stats, err := report.FindStats(set, name)
	if err != nil {
		return admin.UnusedEnd{}, err
	}
	if err := report.CheckConfirms(c, name); err != nil {
		return admin.UnusedEnd{}, err
	}
	u := report.Unused{List: name, Since: since}
	if i := setup.ListIndex(c, name); !here && c.Fleet.On() && i >= 0 && c.Lists[i].Fleet {
		others, err := g.fleet.matches.elsewhere(ctx, name, since, stats.Entries)
		if err != nil {
			return admin.UnusedEnd{}, fmt.Errorf("list %s: %w: %w", name, admin.ErrNotAsked, err)
		}
		u.Elsewhere, u.Fleet = others.has, &others.fleet
	}
	u.Known = g.hits.Snapshot(name)
	return report.UnusedEntries(ctx, set, u, begin, each)
}

// Audit implements admin.Gate.
func (g *adminHandler) Audit(by managed.By, r admin.AuditRecord) error {
	record := by.Record(r.Command, r.List, r.File, r.Why)
	record.What = r.What
	return g.auditLog().Append(record)
}

func (g *adminHandler) auditLog() *listedit.Log {
	return &listedit.Log{Dir: g.current.Load().config.State.Dir}
}

// record writes to the audit log what was done, which a failure cannot take back.
func (g *adminHandler) record(r *listedit.Record, what string) {
	r.What = what
	if err := g.auditLog().Append(r); err != nil {
		g.gate.log.Error("done, but not recorded in the audit log", "command", r.Command, "list", r.List, "error", err)
	}
}
