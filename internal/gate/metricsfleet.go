package gate

import (
	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/admin"
)

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
