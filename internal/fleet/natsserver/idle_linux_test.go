//go:build !race

package natsserver

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"
)

// TestIdle sees that NATS does not sample the process while no server runs: the sampling ends
// with the first error of what this calls.
func TestIdle(t *testing.T) {
	var cpu float64
	var rss, vss int64
	if err := pse.ProcUsage(&cpu, &rss, &vss); err == nil {
		t.Error("the NATS server reads /proc each second, even if it is off")
	}
}
