package fleet

import (
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// TestBounds has the servers bound each bucket of values: neither too many nor too large ones are
// taken, whoever writes them.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := startGate(t, "a", s, nil)
	js := client(t, s)
	for _, name := range []string{bucketLists, bucketState, bucketMembers, bucketLeases} {
		eventually(t, name+" is there", func() bool {
			stream, err := js.Stream(t.Context(), "KV_"+name)
			if err != nil {
				return false
			}
			if c := stream.CachedInfo().Config; c.MaxMsgs != maxValues || c.MaxMsgSize <= maxValue || c.MaxMsgSize > 2*maxValue {
				t.Fatalf("%s takes %d values of %d bytes", name, c.MaxMsgs, c.MaxMsgSize)
			}
			return true
		})
	}
	a.mustAdd("blocked", "one@example.net")
}
