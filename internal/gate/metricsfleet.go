package gate

import (
	"github.com/prometheus/client_golang/prometheus"

	"spamgate/internal/admin"
	"spamgate/internal/fleet"
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

	descServerUp        = desc("fleet_server_up", "1 if the server in the gate runs and has a leader: it takes edits.")
	descServerServers   = desc("fleet_server_servers", "How many servers the cluster is to have.")
	descServerConnected = desc("fleet_server_servers_connected", "How many of them are connected, this one included.")
	descServerClients   = desc("fleet_server_clients", "Clients of the server in the gate.")
	descServerBytes     = desc("fleet_server_store_bytes", "The size of the server's store.")
)

// Describe implements prometheus.Collector.
func (f *fleetPart) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descFleetConnected, descFleetBehind, descFleetSequence, descFleetApplied, descFleetPublished, descFleetConflicts,
		descFleetRefused, descFleetConnects, descFleetPanics,
		descServerUp, descServerServers, descServerConnected, descServerClients, descServerBytes,
	} {
		to <- d
	}
}

var truth = map[bool]float64{true: 1}

// Collect implements prometheus.Collector. A gate in no fleet has no metrics of it.
func (f *fleetPart) Collect(to chan<- prometheus.Metric) {
	s := f.own()
	collectServer(s.OwnServer, to)
	if s.State == admin.FleetOff || s.State == admin.FleetLeft {
		return
	}
	to <- prometheus.MustNewConstMetric(descFleetConnected, prometheus.GaugeValue, truth[s.Connected])
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

// collectServer collects the metrics of the server in the gate, if it has one.
func collectServer(s *fleet.ServerStatus, to chan<- prometheus.Metric) {
	if s == nil {
		return
	}
	for d, value := range map[*prometheus.Desc]float64{
		descServerUp:      truth[s.Running && s.Leader != ""],
		descServerServers: float64(s.Servers), descServerConnected: float64(s.Connected),
		descServerClients: float64(s.Clients), descServerBytes: float64(s.Bytes),
	} {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
}
