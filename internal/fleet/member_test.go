package fleet

import (
	"slices"
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// TestShare lets three gates share a list: the first publishes what it has, the others take it,
// and edits of each reach all.
func TestShare(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b, c := newGate(t, "a", s, nil), newGate(t, "b", s, nil), newGate(t, "c", s, nil)
	a.write("blocked", "one@example.net\n")
	b.write("blocked", "# empty\n")
	a.start()
	equal(t, "blocked", a)
	b.start()
	c.start()
	has(t, "blocked", "one@example.net\n", b, c)
	b.mustAdd("blocked", "two@example.net")
	c.mustAdd("blocked", "three@example.net")
	a.mustAdd("blocked", "four@example.net")
	v := equal(t, "blocked", a, b, c)
	has(t, "blocked", "one@example.net\ntwo@example.net\nthree@example.net\nfour@example.net\n", a, b, c)
	if v.Sequence != 4 || v.Member != "a" || v.Author != "ann" {
		t.Errorf("got %+v", v)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.accepted, "blocked "+v.SHA256[:8]) {
		t.Errorf("b has accepted %q", b.accepted)
	}
}

// TestConnectedIsUsable: a member whose library has a new connection, which it has not reported
// yet, is not connected. It would refuse edits after a longer break.
func TestConnectedIsUsable(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	a.Member.mu.Lock()
	a.cut(errLost)
	a.Member.mu.Unlock()
	if !a.nc.IsConnected() || a.Status().Connected {
		t.Errorf("the library says %v, the member %v", a.nc.IsConnected(), a.Status().Connected)
	}
}
