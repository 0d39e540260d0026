package natsserver

import (
	"time"
	_ "unsafe" // for go:linkname
)

// How long servers wait for each other. They are seconds in NATS.
var (
	//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
	minElectionTimeout time.Duration
	//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
	maxElectionTimeout time.Duration
	//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
	hbInterval time.Duration
	//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
	lostQuorumInterval time.Duration
	//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
	lostQuorumCheck time.Duration
)

// hurry lets the tests wait less for elections.
func hurry() {
	minElectionTimeout, maxElectionTimeout = 500*time.Millisecond, 1500*time.Millisecond
	hbInterval, lostQuorumInterval, lostQuorumCheck = 100*time.Millisecond, time.Second, 500*time.Millisecond
}
