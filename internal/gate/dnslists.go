package gate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/dnslist"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// checker returns the Checker for who judges by the named lists, or by all if there are none.
// It counts the verdicts, and asks lists in DNS.
func (g *gate) checker(lists []string) verdict.Checker {
	return meteredChecker{judge.Checker{Store: g.store, Lists: lists, Asked: setup.Askers(g.dns)}, g.metrics}
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
	descDNSState     = desc("dns_list_state", "1 for the state of a list in DNS: checking, on, broken or off. The last two are not asked.", "list", "state")
	descDNSQuestions = desc("dns_list_questions_total", "Questions that were sent to a resolver for mail.", "list")
	descDNSCacheHits = desc("dns_list_cache_hits_total", "Questions that needed none to be sent.", "list")
	descDNSAnswers   = desc("dns_list_answers_total", "Domains of messages by what a list in DNS said: listed, not_listed or unknown.", "list", "result")
	descDNSUnknown   = desc("dns_list_unknown_total", "Domains of messages about which a list in DNS said nothing, by the cause.", "list", "cause")

	dnsDescs = []*prometheus.Desc{descDNSState, descDNSQuestions, descDNSCacheHits, descDNSAnswers, descDNSUnknown}
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
		to <- prometheus.MustNewConstMetric(descDNSState, prometheus.GaugeValue, v, l.Name, string(state))
	}
	count(descDNSQuestions, l.DNS.Questions)
	count(descDNSCacheHits, l.DNS.CacheHits)
	count(descDNSAnswers, l.DNS.Listed, "listed")
	count(descDNSAnswers, l.DNS.NotListed, "not_listed")
	unknown := uint64(0)
	for cause, n := range l.DNS.Unknown {
		count(descDNSUnknown, n, cause)
		unknown += n
	}
	count(descDNSAnswers, unknown, "unknown")
}
