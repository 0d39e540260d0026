package gate

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/rhsbl"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
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

// nextHopBuckets are the bounds of the histogram of the next hop's times, in seconds. A server
// on the same machine answers within a millisecond, one that scans a message takes seconds, and
// the gate waits for the reply to a message for ten minutes.
var nextHopBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// newNextHopMetrics makes the metrics that next hops count.
func (m *metrics) newNextHopMetrics() {
	m.hopFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "next_hop_failures_total",
		Help: "Transactions and logins that a next hop has failed, by where they were. Probes and refusals do not count.",
	}, []string{"next_hop", "stage"})
	m.hopTimes = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: metricsNamespace, Name: "next_hop_duration_seconds",
		Help:    `How long a next hop took: to connect ("connect"), for MAIL with the first RCPT ("mail"), for the reply to a message ("reply").`,
		Buckets: nextHopBuckets,
	}, []string{"next_hop", "stage"})
}

// addNextHop creates the counters of a next hop, so that they exist with the value 0 from the
// start.
func (m *metrics) addNextHop(next nexthop.Target) {
	for _, state := range nexthop.States(next) {
		isMaildir := strings.HasPrefix(state.Target, nexthop.SchemeMaildir+":")
		for _, step := range nexthop.Steps() {
			if isMaildir == (step == nexthop.StepStore) {
				m.hopFailures.WithLabelValues(state.Target, step.String())
			}
		}
		m.hopTimes.WithLabelValues(state.Target, nexthop.StepReply.String())
		if !isMaildir {
			m.hopTimes.WithLabelValues(state.Target, nexthop.StepConnect.String())
			m.hopTimes.WithLabelValues(state.Target, nexthop.StepMail.String())
		}
	}
}

// Failed implements nexthop.Meter.
func (m *metrics) Failed(nextHop string, step nexthop.Step) {
	m.hopFailures.WithLabelValues(nextHop, step.String()).Inc()
}

// Took implements nexthop.Meter.
func (m *metrics) Took(nextHop string, step nexthop.Step, d time.Duration) {
	m.hopTimes.WithLabelValues(nextHop, step.String()).Observe(d.Seconds())
}

var (
	descCertificate = desc("certificate_not_after_seconds", "When the certificate of a listener, or of the console, expires, in seconds since 1970.", "listener", "file")
	descStateUsable = desc("state_dir_usable", "1 if the gate could write to its state directory within the last minute, and it has room.")
	descStateFree   = desc("state_dir_free_bytes", "The space that is left for the gate in the file system of its state directory.")
)

// stateCollector collects whether the state directory can be used, and when certificates
// expire.
type stateCollector struct {
	gate *adminHandler

	mu     sync.Mutex
	probed time.Time
	usable float64
	free   *int64
}

// stateProbeEvery is how long the result of a probe of the state directory counts: a probe
// writes to the disk.
const stateProbeEvery = time.Minute

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descCertificate, descStateUsable, descStateFree} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(to chan<- prometheus.Metric) {
	c.collectCertificates(to)
	usable, free := c.probe(time.Now())
	to <- prometheus.MustNewConstMetric(descStateUsable, prometheus.GaugeValue, usable)
	if free != nil {
		to <- prometheus.MustNewConstMetric(descStateFree, prometheus.GaugeValue, float64(*free))
	}
}

// collectCertificates collects when certificates expire. Labels may be equal, since two
// listeners without a name may have the same address, with port 0, and two paths may lead to
// one file; Prometheus takes each metric once.
func (c *stateCollector) collectCertificates(to chan<- prometheus.Metric) {
	seen := map[[2]string]bool{}
	for _, served := range c.gate.current.Load().certificates {
		for _, cert := range served.certs.Certificates() {
			if labels := [2]string{served.listener, cert.File}; !seen[labels] {
				seen[labels] = true
				to <- prometheus.MustNewConstMetric(descCertificate, prometheus.GaugeValue, float64(cert.NotAfter.Unix()), labels[:]...)
			}
		}
	}
}

// probe returns whether the state directory is usable, and its free space if that is known.
func (c *stateCollector) probe(now time.Time) (usable float64, free *int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probed.IsZero() || now.Sub(c.probed) >= stateProbeEvery {
		health := c.gate.stateHealth()
		c.probed, c.usable, c.free = now, 0, health.Free
		if health.OK {
			c.usable = 1
		}
	}
	return c.usable, c.free
}

// The metrics of the fleet.
var (
	descFleetConnected = desc("fleet_connected", "1 if the gate can use its fleet.")
	descFleetBehind    = desc("fleet_list_behind", "1 if the fleet has another version of the list than this gate, as far as that is known.", "list")
	descFleetSequence  = desc("fleet_list_sequence", "The number of the list's version that the gate has.", "list")
	descFleetApplied   = desc("fleet_versions_applied_total", "Versions of lists taken from other gates.")
	descFleetPublished = desc("fleet_versions_published_total", "Versions of lists that this gate has made.")
	descFleetConflicts = desc("fleet_conflicts_total", "Edits that were made again since another gate was faster.")
	descFleetRefused   = desc("fleet_edits_refused_total", "Edits that were refused since the fleet could not take them.")
	descFleetConnects  = desc("fleet_connects_total", "Connections to servers of the fleet.")
	descFleetPanics    = desc("fleet_panics_total", "Faults of the program in the fleet: see the log.")

	descFleetServers          = desc("fleet_servers", "How many servers hold the lists.")
	descFleetServersConnected = desc("fleet_servers_connected", "How many of them are connected with each other.")
)

// Describe implements prometheus.Collector.
func (f *fleetPart) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descFleetConnected, descFleetBehind, descFleetSequence, descFleetApplied, descFleetPublished, descFleetConflicts,
		descFleetRefused, descFleetConnects, descFleetPanics,
		descFleetServers, descFleetServersConnected,
	} {
		to <- d
	}
}

var truth = map[bool]float64{true: 1}

// Collect implements prometheus.Collector. A gate in no fleet has no metrics of it.
func (f *fleetPart) Collect(to chan<- prometheus.Metric) {
	s := f.own()
	if s.State == admin.FleetOff || s.State == admin.FleetLeft {
		return
	}
	to <- prometheus.MustNewConstMetric(descFleetConnected, prometheus.GaugeValue, truth[s.Connected])
	if s.Connected {
		n, _ := s.ConnectedServers()
		to <- prometheus.MustNewConstMetric(descFleetServers, prometheus.GaugeValue, float64(max(1, len(s.Servers))))
		to <- prometheus.MustNewConstMetric(descFleetServersConnected, prometheus.GaugeValue, float64(max(1, n)))
	}
	for _, l := range s.Lists {
		to <- prometheus.MustNewConstMetric(descFleetBehind, prometheus.GaugeValue, truth[l.Behind || l.Error != ""], l.Name)
		to <- prometheus.MustNewConstMetric(descFleetSequence, prometheus.GaugeValue, float64(l.Sequence), l.Name)
	}
	for d, value := range map[*prometheus.Desc]int64{
		descFleetApplied: s.Applied, descFleetPublished: s.Published, descFleetConflicts: s.Conflicts,
		descFleetRefused: s.Refused, descFleetConnects: s.Connects, descFleetPanics: s.Panics,
	} {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
	}
}
