package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
)

// TestDeafWatch deletes the consumers of the watches, as a server that ends does: a change comes
// nevertheless, long before the library notices.
func TestDeafWatch(t *testing.T) {
	s := fleettest.Start(t, nil)
	never := func(o *Options) { o.times.resync = time.Hour }
	a, b := startGate(t, "a", s, nil), startGate(t, "b", s, never)
	a.mustAdd("blocked", "one@example.net")
	equal(t, "blocked", a, b)
	stream, err := client(t, s).Stream(t.Context(), "KV_"+bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	names := stream.ConsumerNames(t.Context())
	for name := range names.Name() {
		if err := stream.DeleteConsumer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if names.Err() != nil {
		t.Fatal(names.Err())
	}
	// A watch that is new is not replaced. The library notices after ten seconds, at the earliest.
	for began := time.Now(); !strings.Contains(b.read("blocked"), "edit"); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 8*time.Second {
			t.Fatal("the gate hears of no edit")
		}
		a.mustAdd("blocked", fmt.Sprintf("edit%d@example.net", strings.Count(a.read("blocked"), "\n")))
	}
	equal(t, "blocked", a, b)
}
