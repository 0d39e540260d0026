package gate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/admin"
	"spamgate/internal/report"
)

// gateCollector collects the metrics of the lists, the filter and the next hop.
type gateCollector struct{ gate *adminHandler }

// desc describes a metric of the collector.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", name), help, labels, nil)
}

// The metrics of the gate as a whole.
var (
	descGeneration = desc("generation", "The number of the lists' state; it grows by one with each change.")
	descBuild      = desc("build_duration_seconds", "How long it took to read what had changed and to make the present state of the lists.")
	descLookups    = desc("lookups_total", "Senders looked up.")
	descMaybes     = desc("filter_maybes_total", "Keys that the filter did not rule out.")
	descFalse      = desc("filter_false_maybes_total", "Keys that the filter did not rule out and no list held.")
	descFilter     = desc("filter_info", "1; its labels are the filter's kind and hash family.", "kind", "family")
	descFill       = desc("filter_fill_ratio", "The part of the filter's bits that is set.")
	descFPR        = desc("filter_false_positive_ratio", "The probability that the filter takes a key for one it may hold that it does not.")
	descBytes      = desc("filter_size_bytes", "The memory that the filter takes.")
	descCapacity   = desc("filter_capacity_keys", "How many keys the filter is meant for.")
	descNextHop    = desc("next_hop_up", "1 if mail can pass to the next hop, as the last mail or probe has shown; 0 if it cannot for one of the listeners. Missing while it is not known.", "next_hop")
	descUnknown    = desc("next_hop_unknown", "1 while it is not known whether mail can pass to the next hop: it has not answered yet, or refused a probe in a way that says nothing about clients.", "next_hop")
	descAnswered   = desc("next_hop_recipients", "Recipients that the next hop accepted or refused for good in the last 10 minutes.", "next_hop")
	descRefused    = desc("next_hop_recipients_refused", "Those of them that it refused.", "next_hop")
)

// listMetric is a metric of each list.
type listMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(l *admin.List) (v float64, ok bool)
}

func listGauge(name, help string, value func(l *admin.List) (float64, bool)) listMetric {
	return listMetric{desc("list_"+name, help, "list"), prometheus.GaugeValue, value}
}

// always returns the value of a metric that every list has.
func always[T int | int64 | float64](value func(l *admin.List) T) func(*admin.List) (float64, bool) {
	return func(l *admin.List) (float64, bool) { return float64(value(l)), true }
}

// yes returns 1 for true, and 0 for false.
func yes(value func(l *admin.List) bool) func(*admin.List) (float64, bool) {
	return func(l *admin.List) (float64, bool) {
		if value(l) {
			return 1, true
		}
		return 0, true
	}
}

// when returns a time in seconds since 1970, as Prometheus expects: the age is the difference
// to time().
func when(value func(l *admin.List) *time.Time) func(*admin.List) (float64, bool) {
	return func(l *admin.List) (float64, bool) {
		t := value(l)
		if t == nil {
			return 0, false
		}
		return float64(t.UnixMilli()) / 1000, true
	}
}

var listMetrics = []listMetric{
	listGauge("entries", "Entries of the list, exceptions and duplicates included.", always(func(l *admin.List) int { return l.Entries })),
	listGauge("exceptions", "Entries of the list that are exceptions.", always(func(l *admin.List) int { return l.Exceptions })),
	listGauge("duplicates", "Duplicate entries of the list.", always(func(l *admin.List) int { return l.Duplicates })),
	listGauge("invalid_lines", "Invalid lines of the list.", always(func(l *admin.List) int { return l.Invalid })),
	listGauge("unsupported_lines", "Lines of the list that cannot be looked up here.", always(func(l *admin.List) int { return l.Unsupported })),
	listGauge("protected_entries", "Entries left out because they cover a protected name, or names below one.", always(func(l *admin.List) int { return l.Protected })),
	listGauge("disallowed_entries", "Entries left out because a list from a URL may not have them: <> and name@.", always(func(l *admin.List) int { return l.Disallowed })),
	listGauge("expired_entries", "Entries left out because they have expired.", always(func(l *admin.List) int { return l.Expired })),
	listGauge("index_size_bytes", "The size of the list's index, on disk or in memory.", always(func(l *admin.List) int64 { return l.IndexBytes })),
	listGauge("fill_ratio", "The part of the filter's bits that would be set if it held this list alone.",
		always(func(l *admin.List) float64 { return l.FillRatio })),
	listGauge("false_positive_ratio", "The probability of a false positive if the filter held this list alone.",
		always(func(l *admin.List) float64 { return float64(l.FPR) })),
	listGauge("loaded_timestamp_seconds", "When the version of the list in use was read.", when(func(l *admin.List) *time.Time { return l.Loaded })),
	listGauge("modified_timestamp_seconds", "When the newest file of the version in use was last changed.", when(report.NewestFile)),
	listGauge("error", "1 while the version of the list on disk is not in use.", yes(func(l *admin.List) bool { return l.Error != "" })),
	listGauge("held", "1 while an update of the list is held because it looks wrong.", yes(func(l *admin.List) bool { return l.Held })),
	listGauge("pinned", "1 while the list is pinned at one version.", yes(func(l *admin.List) bool { return l.Pinned != nil })),
	listGauge("fetched_timestamp_seconds", "When the server of the list's URL last sent or confirmed the version in use.",
		when(func(l *admin.List) *time.Time { return fetchOf(l).LastGood })),
	listGauge("fetch_failures", "How often in a row fetching the list's URL has failed.", func(l *admin.List) (float64, bool) {
		return float64(fetchOf(l).Failures), l.Fetch != nil
	}),
	listGauge("fetched_expires_timestamp_seconds", "When the signature of the copy of the list expires.",
		when(func(l *admin.List) *time.Time { return fetchOf(l).Expires })),
	listGauge("published_timestamp_seconds", "When the version of the list that others fetch was signed.",
		when(func(l *admin.List) *time.Time { return publishedOf(l).Signed })),
	listGauge("publish_error", "1 while others fetch an earlier version of the list.", func(l *admin.List) (float64, bool) {
		if publishedOf(l).Error != "" {
			return 1, true
		}
		return 0, l.Published != nil
	}),
}

var descHits = desc("list_hits_total", "Matches of the list's entries.", "list")

func fetchOf(l *admin.List) admin.Fetch {
	if l.Fetch == nil {
		return admin.Fetch{}
	}
	return *l.Fetch
}

func publishedOf(l *admin.List) admin.Published {
	if l.Published == nil {
		return admin.Published{}
	}
	return *l.Published
}

// recipientMetric is a metric of each file with recipients.
type recipientMetric struct {
	desc  *prometheus.Desc
	value func(f *admin.RecipientFile) float64
}

func recipientGauge(name, help string, value func(f *admin.RecipientFile) float64) recipientMetric {
	return recipientMetric{desc("recipient_file_"+name, help, "file"), value}
}

var recipientMetrics = []recipientMetric{
	recipientGauge("entries", "Entries of a file with recipients.", func(f *admin.RecipientFile) float64 { return float64(f.Entries) }),
	recipientGauge("invalid_lines", "Invalid lines of a file with recipients.", func(f *admin.RecipientFile) float64 { return float64(f.Invalid) }),
	recipientGauge("error", "1 while the version of a file with recipients on disk is not in use.", func(f *admin.RecipientFile) float64 {
		if f.Error != "" {
			return 1
		}
		return 0
	}),
	recipientGauge("modified_timestamp_seconds", "When the version of a file with recipients in use was changed.", func(f *admin.RecipientFile) float64 {
		return float64(f.Modified.UnixMilli()) / 1000
	}),
}

// Describe implements prometheus.Collector.
func (c gateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descGeneration, descBuild, descLookups, descMaybes, descFalse, descFilter, descFill, descFPR,
		descBytes, descCapacity, descNextHop, descUnknown, descAnswered, descRefused, descHits,
	} {
		to <- d
	}
	for _, m := range listMetrics {
		to <- m.desc
	}
	for _, m := range recipientMetrics {
		to <- m.desc
	}
	for _, d := range dnsListDescs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c gateCollector) Collect(to chan<- prometheus.Metric) {
	s := c.gate.Status()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	counter := func(d *prometheus.Desc, v *uint64) {
		if v != nil {
			send(d, prometheus.CounterValue, float64(*v))
		}
	}
	send(descGeneration, prometheus.GaugeValue, float64(s.Generation))
	send(descBuild, prometheus.GaugeValue, c.gate.store.Set().Stats().Took.Seconds())
	counter(descLookups, s.Lookups)
	counter(descMaybes, s.Maybes)
	counter(descFalse, s.FalseMaybes)
	send(descFilter, prometheus.GaugeValue, 1, s.Filter.Kind, s.Filter.Family)
	send(descFill, prometheus.GaugeValue, s.Filter.FillRatio)
	send(descFPR, prometheus.GaugeValue, float64(s.Filter.FPR))
	send(descBytes, prometheus.GaugeValue, float64(s.Filter.Bytes))
	send(descCapacity, prometheus.GaugeValue, s.Filter.Capacity)
	for i := range s.Lists {
		l := &s.Lists[i]
		if l.DNS != nil {
			collectDNS(to, l)
			continue
		}
		for _, m := range listMetrics {
			if v, ok := m.value(l); ok {
				send(m.desc, m.kind, v, l.Name)
			}
		}
		if l.HitsToday != nil { // else it is not known
			send(descHits, prometheus.CounterValue, float64(c.gate.hits.Total(l.Name)), l.Name)
		}
	}
	for i := range s.Recipients {
		for _, m := range recipientMetrics {
			send(m.desc, prometheus.GaugeValue, m.value(&s.Recipients[i]), s.Recipients[i].Name)
		}
	}
	up, unknown, answered, refused := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, hop := range s.NextHops {
		unknown[hop.Address] += 0
		answered[hop.Address] += float64(hop.Recipients)
		refused[hop.Address] += float64(hop.RecipientsRefused)
		if hop.Up == nil {
			unknown[hop.Address] = 1
			continue
		}
		if !*hop.Up {
			up[hop.Address] = 0
		} else if _, known := up[hop.Address]; !known {
			up[hop.Address] = 1
		}
	}
	for metric, values := range map[*prometheus.Desc]map[string]float64{descNextHop: up, descUnknown: unknown, descAnswered: answered, descRefused: refused} {
		for address, v := range values {
			send(metric, prometheus.GaugeValue, v, address)
		}
	}
}
