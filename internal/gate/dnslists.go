package gate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// checker returns the Checker for who judges by the named lists, or by all if there are none.
// It counts the verdicts, asks lists in DNS, and proves senders.
func (g *gate) checker(c *config.Config, lists []string) verdict.Checker {
	return meteredChecker{judge.Checker{
		Store: g.store, Lists: lists, Unwrap: setup.Wrappings(c),
		Asked: setup.Askers(g.dns), Prover: setup.Provers(g.proofs),
	}, g.metrics}
}

// logDNSLists logs the state of the lists in DNS.
func (g *gate) logDNSLists() {
	status := report.Status(g.config, g.store.Set().Stats())
	report.AddDNS(&status, g.dns.Status())
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
			g.log.Info("list in DNS", attrs...)
			continue
		}
		g.log.Warn("list in DNS is not asked", append(attrs, "since", d.Since.Format(time.RFC3339), "error", d.Reason)...)
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
