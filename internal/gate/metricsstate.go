package gate

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/certs"
)

var (
	descCertificate = desc("certificate_not_after_seconds", "When the certificate of a listener expires, in seconds since 1970.", "listener", "file")
	descStateUsable = desc("state_dir_usable", "1 if the gate could write to its state directory within the last minute, and it has room.")
	descStateFree   = desc("state_dir_free_bytes", "The space that is left for the gate in the file system of its state directory.")
)

// servedCertificate is the certificate of a listener.
type servedCertificate struct {
	listener, file string
	cert           *certs.Reloader
}

// servedCertificates returns the certificates that listeners have now.
func servedCertificates(listeners []*runningListener) []servedCertificate {
	var all []servedCertificate
	for _, l := range listeners {
		if l.cert != nil {
			all = append(all, servedCertificate{l.config.Name, l.config.TLSCert, l.cert})
		}
	}
	return all
}

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
	for _, served := range c.gate.now.Load().certificates {
		to <- prometheus.MustNewConstMetric(descCertificate, prometheus.GaugeValue,
			float64(served.cert.NotAfter().Unix()), served.listener, served.file)
	}
	usable, free := c.probe(time.Now())
	to <- prometheus.MustNewConstMetric(descStateUsable, prometheus.GaugeValue, usable)
	if free != nil {
		to <- prometheus.MustNewConstMetric(descStateFree, prometheus.GaugeValue, float64(*free))
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
