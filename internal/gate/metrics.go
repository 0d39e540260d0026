package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/accounts"
	"spamgate/internal/rhsbl"
	"spamgate/internal/version"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
)

// metricsNamespace begins the name of each of our metrics.
const metricsNamespace = "spamgate"

// lookupBuckets are the bounds of the histogram of lookup times, in seconds. A sender that is
// in no list takes less than a microsecond, a listed one some microseconds, and a lookup that
// waits for the disk milliseconds.
var lookupBuckets = []float64{250e-9, 500e-9, 1e-6, 2.5e-6, 5e-6, 10e-6, 25e-6, 100e-6, 1e-3, 10e-3, 100e-3}

// Why a sender was not looked up. Clients can cause the first; the second needs repair.
const (
	causeAddress = "address"
	causeLists   = "lists"
)

// metrics holds the metrics that are counted as things happen. Those of the lists and the next
// hop are collected when Prometheus asks (see metricslists.go).
type metrics struct {
	registry *prometheus.Registry

	openSessions atomic.Int64 // of all listeners

	sessions  *prometheus.CounterVec
	open      *prometheus.GaugeVec
	messages  *prometheus.CounterVec
	received  *prometheus.CounterVec
	limits    *prometheus.CounterVec
	logins    *prometheus.CounterVec
	decisions *prometheus.CounterVec
	failures  *prometheus.CounterVec
	lookup    prometheus.Histogram

	dns dnsCollector

	hopFailures *prometheus.CounterVec
	hopTimes    *prometheus.HistogramVec

	// clean counts senders that are in no list, by stage.
	clean [verdict.AllStages]prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), dns: dnsCollector{servers: map[string][]*rhsbl.Server{}}}
	m.sessions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "sessions_total",
		Help: "Connections of clients, by listener.",
	}, []string{"listener"})
	m.open = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "sessions_open",
		Help: "Connections of clients that are open.",
	}, []string{"listener"})
	m.messages = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "messages_total",
		Help: "Messages that clients have begun to send, or that have failed at a recipient, by listener and by what became of them.",
	}, []string{"listener", "outcome"})
	m.received = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "recipients_total",
		Help: "Recipients that clients have named, by listener and by the answer.",
	}, []string{"listener", "outcome"})
	m.limits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "limited_total",
		Help: `Connections and commands that a limit has refused, by listener, limit, and whose it is ("of").`,
	}, []string{"listener", "limit", "of"})
	m.logins = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "auth_total",
		Help: "AUTH commands passed on to the next hop, by listener and by what became of them.",
	}, []string{"listener", "outcome"})
	m.decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "decisions_total",
		Help: `What the lists said of senders, by where the sender stood, the list that decided ("" where none did) and the action; "monitor" stands beside, and decides nothing.`,
	}, []string{"stage", "list", "action"})
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "lookup_failures_total",
		Help: `Senders who could not be looked up, by the cause: the sender is not an address ("address"), or a list could not be asked ("lists").`,
	}, []string{"cause"})
	for _, cause := range []string{causeAddress, causeLists} {
		m.failures.WithLabelValues(cause)
	}
	m.lookup = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: metricsNamespace, Name: "lookup_duration_seconds",
		Help:    fmt.Sprintf("How long the lookup of a sender took: of one in %d, chosen at random. spamgate_lookups_total counts them all.", timedShare),
		Buckets: lookupBuckets,
	})
	for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
		m.clean[stage] = m.decisions.WithLabelValues(stage.String(), "", verdict.Accept.String())
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "build_info",
		Help:        "1; its label is the version.",
		ConstLabels: prometheus.Labels{"version": version.Number},
	})
	build.Set(1)
	m.newNextHopMetrics()
	m.registry.MustRegister(m.sessions, m.open, m.messages, m.received, m.limits, m.logins, m.decisions, m.failures, m.lookup,
		m.hopFailures, m.hopTimes, &m.dns, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// addLog adds the metric of dropped log lines.
func (m *metrics) addLog(dropped func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "log_lines_dropped_total",
		Help: "Log lines dropped because the output was blocked or too slow.",
	}, func() float64 { return float64(dropped()) }))
}

// addConsole adds the metric of attempts to log in to the console.
func (m *metrics) addConsole(attempts func() accounts.Attempts) {
	for outcome, count := range map[string]func(accounts.Attempts) uint64{
		"right":   func(a accounts.Attempts) uint64 { return a.Right },
		"wrong":   func(a accounts.Attempts) uint64 { return a.Wrong },
		"limited": func(a accounts.Attempts) uint64 { return a.Limited },
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "console_logins_total",
			Help:        `Passwords given to the console, by outcome: "limited" ones were not checked, since there were too many.`,
			ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(count(attempts())) }))
	}
}

// handler returns a handler that serves all metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 8,
		Timeout:             30 * time.Second,
		EnableOpenMetrics:   true,
	})
}

// Connected implements smtpfilter.Meter.
func (m *metrics) Connected(listener string) {
	m.sessions.WithLabelValues(listener).Inc()
	m.open.WithLabelValues(listener).Inc()
	m.openSessions.Add(1)
}

// Disconnected implements smtpfilter.Meter.
func (m *metrics) Disconnected(listener string) {
	m.open.WithLabelValues(listener).Dec()
	m.openSessions.Add(-1)
}

// Message implements smtpfilter.Meter.
func (m *metrics) Message(listener string, outcome smtpfilter.Outcome) {
	m.messages.WithLabelValues(listener, outcome.String()).Inc()
}

// Recipient implements smtpfilter.Meter.
func (m *metrics) Recipient(listener string, outcome smtpfilter.RecipientOutcome) {
	m.received.WithLabelValues(listener, outcome.String()).Inc()
}

// Limited implements smtpfilter.Meter.
func (m *metrics) Limited(listener string, reached limit.Result) {
	m.limits.WithLabelValues(listener, reached.Limit, reached.Scope).Inc()
}

// Auth implements smtpfilter.Meter.
func (m *metrics) Auth(listener string, outcome smtpfilter.AuthOutcome) {
	m.logins.WithLabelValues(listener, outcome.String()).Inc()
}

// addListener creates the counters of a listener, so that they exist with the value 0 from
// the start.
func (m *metrics) addListener(name string) {
	m.sessions.WithLabelValues(name)
	m.open.WithLabelValues(name)
	for _, o := range smtpfilter.Outcomes() {
		m.messages.WithLabelValues(name, o.String())
	}
	for _, o := range smtpfilter.RecipientOutcomes() {
		m.received.WithLabelValues(name, o.String())
	}
	for _, r := range limit.Kinds() {
		m.limits.WithLabelValues(name, r.Limit, r.Scope)
	}
	for _, o := range smtpfilter.AuthOutcomes() {
		m.logins.WithLabelValues(name, o.String())
	}
}

// clockBase is an arbitrary time. time.Since(clockBase) takes half the time of time.Now, which
// reads two clocks.
var clockBase = time.Now()

// timedShare is the number of lookups of which one is timed, since timing takes three times as
// long as everything else here. The choice is random: every sixteenth would always be of the
// same kind if each message has, say, four lookups.
const timedShare = 16

// meteredChecker returns Judges whose verdicts are counted.
type meteredChecker struct {
	checker judge.Checker
	metrics *metrics
}

// Judge returns the Judge of the present lists.
func (c meteredChecker) Judge() verdict.Judge { return &metered{c.checker.Judge(), c.metrics} }

// metered is a Judge whose verdicts are counted. A pointer is the Judge: for a value the compiler
// would add a method that copies each verdict once more.
type metered struct {
	judge   verdict.Judge
	metrics *metrics
}

// Generation returns the generation of the lists.
func (j *metered) Generation() uint64 { return j.judge.Generation() }

// KeysOf returns the keys under which lists hold entries for a recipient.
func (j *metered) KeysOf(r verdict.Recipient) ([]string, error) {
	if recipientJudge, ok := j.judge.(verdict.RecipientJudge); ok {
		return recipientJudge.KeysOf(r)
	}
	return nil, nil
}

// Proofs returns the proofs on which verdicts may depend.
func (j *metered) Proofs() verdict.Proofs {
	if proofJudge, ok := j.judge.(verdict.ProofJudge); ok {
		return proofJudge.Proofs()
	}
	return 0
}

// Judge asks the lists and counts the verdict. That adds 30 ns to a lookup, and 120 ns to one
// that is timed (BenchmarkMetered). A message takes more than 100 µs.
func (j *metered) Judge(ctx context.Context, m *verdict.Message, q verdict.Query) (v verdict.Verdict, err error) {
	timed := rand.Uint32()%timedShare == 0
	var began time.Duration
	if timed {
		began = time.Since(clockBase)
	}
	v, err = j.judge.Judge(ctx, m, q)
	if timed {
		j.metrics.lookup.Observe((time.Since(clockBase) - began).Seconds())
	}
	j.metrics.decided(&q, &v, err)
	return v, err
}

// decided counts a verdict. A form that servers may complete counts only if an entry matches,
// since each form takes many lookups. The verdict for a sender in no list is by far the most
// frequent, and costs the least.
func (m *metrics) decided(q *verdict.Query, v *verdict.Verdict, err error) {
	switch {
	case errors.Is(err, verdict.ErrNoAnswer):
		m.failures.WithLabelValues(causeLists).Inc()
		return
	case err != nil:
		if q.Reading == verdict.ReadAddress {
			m.failures.WithLabelValues(causeAddress).Inc()
		}
		return
	case v.Match.IsZero():
		if q.Reading == verdict.ReadAddress {
			m.clean[q.Stage].Inc()
		}
	default:
		m.decisions.WithLabelValues(q.Stage.String(), v.Match.List, v.Action.String()).Inc()
	}
	for _, match := range v.Monitored {
		m.decisions.WithLabelValues(q.Stage.String(), match.List, "monitor").Inc()
	}
}
