package gate

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/config"
	"spamgate/internal/rhsbl"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
)

// addDoor creates the counters of a door, so that they exist with the value 0 from the start. Its
// clients cannot log in, and only their number is limited. Through DNS no message is known.
func (m *metrics) addDoor(d config.Door) {
	m.sessions.WithLabelValues(d.Name)
	m.open.WithLabelValues(d.Name)
	m.limits.WithLabelValues(d.Name, limit.Connections, limit.All)
	if d.Table == config.TableDNSServer {
		return
	}
	for _, o := range smtpfilter.Outcomes() {
		m.messages.WithLabelValues(d.Name, o.String())
	}
	for _, o := range smtpfilter.RecipientOutcomes() {
		m.received.WithLabelValues(d.Name, o.String())
	}
}

var descDNSQuestions = desc("dns_questions_total", "Questions to a DNS server of the gate, by listener and by what became of them.", "listener", "outcome")

// dnsCollector collects the questions of the DNS servers, which count them. Several without a
// name may have the same address, with port 0.
type dnsCollector struct {
	mu      sync.Mutex
	servers map[string][]*rhsbl.Server // by name
}

// add adds a server.
func (c *dnsCollector) add(name string, s *rhsbl.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[name] = append(c.servers[name], s)
}

// Describe implements prometheus.Collector.
func (c *dnsCollector) Describe(to chan<- *prometheus.Desc) { to <- descDNSQuestions }

// Collect implements prometheus.Collector.
func (c *dnsCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, servers := range c.servers {
		counts := map[rhsbl.Outcome]uint64{}
		for _, s := range servers {
			s.Counts(func(o rhsbl.Outcome, n uint64) { counts[o] += n })
		}
		for o, n := range counts {
			to <- prometheus.MustNewConstMetric(descDNSQuestions, prometheus.CounterValue, float64(n), name, o.String())
		}
	}
}
