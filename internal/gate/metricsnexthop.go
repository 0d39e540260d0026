package gate

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/smtpfilter/nexthop"
)

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
