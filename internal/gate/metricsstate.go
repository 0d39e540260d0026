package gate

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/certs"
)

var (
	descCertificate = desc("certificate_not_after_seconds", "When the certificate of a listener, or of the console, expires, in seconds since 1970.", "listener", "file")
	descStateUsable = desc("state_dir_usable", "1 if the gate could write to its state directory within the last minute, and it has room.")
	descStateFree   = desc("state_dir_free_bytes", "The space that is left for the gate in the file system of its state directory.")
)

// servedCertificates are the certificates of a listener, or of the console.
type servedCertificates struct {
	listener string
	certs    *certs.Reloader
}

// certificates returns the certificates that the gate has now.
func (g *gate) certificates() []servedCertificates {
	var all []servedCertificates
	for _, l := range g.listeners {
		if l.certs != nil {
			all = append(all, servedCertificates{labelOf(l, g.listeners), l.certs})
		}
	}
	if g.consoleCerts != nil {
		all = append(all, servedCertificates{"console", g.consoleCerts})
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
	for _, served := range c.gate.now.Load().certificates {
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
