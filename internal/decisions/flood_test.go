package decisions

import "testing"

// TestFloodOfOneRecipient: refusals at two recipients are two rows, so that each one finds his.
func TestFloodOfOneRecipient(t *testing.T) {
	f := newFloods()
	of := func(recipients ...string) *Decision {
		return &Decision{Sender: "a@listed.example", Recipients: recipients}
	}
	first, again, other := f.key(of("b@example.net")), f.key(of("b@example.net")), f.key(of("c@example.net"))
	if first != again || first == other {
		t.Error("the keys do not tell recipients apart")
	}
}
