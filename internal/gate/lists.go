package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/blocklist/hits"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/fetch"
	"spamgate/internal/managed"
	"spamgate/internal/proof"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// lists are what senders are judged by. Only load sets the fields, once, before anything is served.
type lists struct {
	gate    *gate
	store   *store.Store
	dns     *dnslist.Client // asks the lists in DNS
	proofs  *proof.Proofs   // proves senders for allow lists
	fetcher *fetch.Fetcher
	editor  *managed.Editor
	hits    *hits.Log
}

// maxReloadFetch bounds the time for which a reload waits for the first fetch of new lists.
const maxReloadFetch = 30 * time.Second

// prepare prepares the change to a configuration: see part.
func (l *lists) prepare(ctx context.Context, was, c *config.Config) (ch change, err error) {
	lists, err := setup.BlocklistConfig(c, l.gate.log)
	if err != nil {
		return ch, err
	}
	lists.OnHit = l.hits.Record
	ch.load = func(ctx context.Context) error {
		if was == nil {
			return l.open(ctx, c, lists)
		}
		return l.reload(ctx, was, c, lists)
	}
	ch.commit = func() {
		if key, ok := report.HitsKey(l.store.Set()); ok && c.Filter.Confirm {
			l.hits.Start(key, setup.ListNames(c.Lists)) // of lists that are new
		}
		if was == nil {
			return
		}
		// Wait for files that are being written. The store logs lists that are held, and serves
		// their last good version.
		_ = l.store.Rescan(ctx)
		if err := setup.ApplyProofs(l.proofs, c); err != nil {
			l.gate.log.Error("proofs keep their old DNS servers", "error", err)
		}
	}
	return ch, nil
}

// open loads the lists at the start.
func (l *lists) open(ctx context.Context, c *config.Config, lists store.Config) (err error) {
	g := l.gate
	if err := managed.Make(c); err != nil {
		return err
	}
	lists.StoredFirst = g.in == nil // a predecessor may serve something newer
	if g.in == nil {                // else the predecessor is the member, and has the lists
		g.fleet.awaitFirst(ctx, c, g.admin.openStarting)
	}
	unfetched := setup.FirstLoad(ctx, c, g.log, g.stderr)
	if l.store, err = store.Open(ctx, lists); err != nil {
		return errors.Join(unfetched, setup.PlaceLists(c, err))
	}
	l.fetcher = setup.StartSources(nil, g.log)
	if l.dns, err = setup.OpenDNS(c, g.log); err != nil {
		return err
	}
	l.editor = managed.New(g.fleet.config, l.store)
	l.editor.Join(g.fleet)
	l.proofs, err = setup.OpenProofs(c, g.log)
	return err
}

// reload loads the lists of another configuration. After an error nothing has changed.
func (l *lists) reload(ctx context.Context, was, c *config.Config, lists store.Config) error {
	fetching, cancel := context.WithTimeout(ctx, maxReloadFetch)
	defer cancel()
	unfetched := setup.FirstLoad(fetching, c, l.gate.log, io.Discard)
	if err := setup.ApplyDNS(l.dns, c); err != nil { // before the Store has lists that it does not know
		return err
	}
	if err := managed.Make(c); err != nil {
		return errors.Join(err, setup.ApplyDNS(l.dns, was))
	}
	if err := l.store.Reload(ctx, lists); err != nil {
		return errors.Join(unfetched, setup.PlaceLists(c, err), setup.ApplyDNS(l.dns, was))
	}
	return nil
}

// close closes what open has opened.
func (l *lists) close() error {
	err := l.hits.Close()
	if err != nil {
		err = fmt.Errorf("what matched since the hits were last written: %w", err)
	}
	if l.fetcher != nil {
		l.fetcher.Close()
	}
	if l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	if l.dns != nil {
		l.dns.Close()
	}
	return err
}

// checker returns the Checker for who judges by the named lists, or by all if there are none.
// It counts the verdicts, asks lists in DNS, and proves senders.
func (g *gate) checker(c *config.Config, names []string) verdict.Checker {
	return meteredChecker{judge.Checker{
		Store: g.store, Lists: names, Unwrap: setup.Wrappings(c),
		Asked: setup.Askers(g.dns), Prover: setup.Provers(g.proofs),
	}, g.metrics}
}

// logDNS logs the state of the lists in DNS.
func (l *lists) logDNS(c *config.Config) {
	log, status := l.gate.log, report.Status(c, l.store.Set().Stats())
	report.AddDNS(&status, l.dns.Status())
	for _, l := range status.Lists {
		d := l.DNS
		if d == nil {
			continue
		}
		unknown := uint64(0)
		for _, n := range d.Unknown {
			unknown += n
		}
		attrs := []any{"list", l.Name, "zone", d.Zone, "state", d.State, "questions", d.Questions, "cache_hits", d.CacheHits,
			"listed", d.Listed, "not_listed", d.NotListed, "unknown", unknown}
		if d.Problem() == "" {
			log.Info("list in DNS", attrs...)
			continue
		}
		log.Warn("list in DNS is not asked", append(attrs, "since", d.Since.Format(time.RFC3339), "error", d.Reason)...)
	}
}

// The metrics of lists in DNS.
var (
	descDNSListState     = desc("dns_list_state", "1 for the state of a list in DNS: checking, on, broken or off. The last two are not asked.", "list", "state")
	descDNSListQuestions = desc("dns_list_questions_total", "Questions that were sent to a resolver for mail.", "list")
	descDNSListCacheHits = desc("dns_list_cache_hits_total", "Questions that needed none to be sent.", "list")
	descDNSListAnswers   = desc("dns_list_answers_total", "Domains of messages by what a list in DNS said: listed, not_listed or unknown.", "list", "result")
	descDNSListUnknown   = desc("dns_list_unknown_total", "Domains of messages about which a list in DNS said nothing, by the cause.", "list", "cause")

	dnsListDescs = []*prometheus.Desc{descDNSListState, descDNSListQuestions, descDNSListCacheHits, descDNSListAnswers, descDNSListUnknown}
)

// collectDNS sends the metrics of a list in DNS.
func collectDNS(to chan<- prometheus.Metric, l *admin.List) {
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{l.Name}, labels...)...)
	}
	for _, state := range []dnslist.State{dnslist.Checking, dnslist.On, dnslist.Broken, dnslist.Off} {
		v := 0.0
		if l.DNS.State == string(state) {
			v = 1
		}
		to <- prometheus.MustNewConstMetric(descDNSListState, prometheus.GaugeValue, v, l.Name, string(state))
	}
	count(descDNSListQuestions, l.DNS.Questions)
	count(descDNSListCacheHits, l.DNS.CacheHits)
	count(descDNSListAnswers, l.DNS.Listed, "listed")
	count(descDNSListAnswers, l.DNS.NotListed, "not_listed")
	unknown := uint64(0)
	for cause, n := range l.DNS.Unknown {
		count(descDNSListUnknown, n, cause)
		unknown += n
	}
	count(descDNSListAnswers, unknown, "unknown")
}
