package fleet

import (
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
)

// TestLostAnswer loses the answer to a question, with the connection or without it: the gate does
// not wait long for it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		edit time.Duration
		lose losing
	}{
		{"with the connection", 10 * time.Minute, losing{cut: true}},
		{"alone", quick.edit, losing{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := fleettest.Start(t, nil)
			r := newRelay(t, s)
			a, b := newGate(t, "a", s, nil), newGate(t, "b", s, func(o *Options) {
				o.Servers = r.servers()
				o.times.edit = test.edit
			})
			a.write("blocked", "one@example.net\n")
			a.start()
			b.start()
			equal(t, "blocked", a, b)
			test.lose.question = "DIRECT.GET.KV_" + bucketLists + ".$KV." + bucketLists + ".list.blocked "
			<-r.lose(test.lose)
			a.mustAdd("blocked", "two@example.net")
			has(t, "blocked", "one@example.net\ntwo@example.net\n", b)
		})
	}
}
