package door

import (
	"runtime"
	"testing"
	"weak"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
)

// changing is a Store whose Set is replaced.
type changing struct{ set *blocklist.Set }

func (c *changing) Set() *blocklist.Set { return c.set }

// TestOnceForgets: a message that is remembered does not keep the Set of its beginning, with
// its filter, in memory.
func TestOnceForgets(t *testing.T) {
	d, _, _ := newDoor(t, true)
	sets := &changing{newChecker(t).Set()}
	first := weak.Make(sets.set)
	settings := *d.Settings()
	settings.Checker = judge.Checker{Store: sets}
	d.Apply(settings)
	m := d.Begin(t.Context(), Envelope{From: "a@reject.example"})
	generation := sets.set.Generation()
	sets.set = newChecker(t).Set()
	runtime.GC()
	runtime.GC()
	if first.Value() != nil {
		t.Error("the Set is still in memory")
	}
	if m.Recipient("you@example.net").Reply.Code != 550 || m.judge.Generation() != generation {
		t.Error("the message is another one")
	}
	if _, err := m.judge.Judge(t.Context(), nil, verdict.Query{}); err == nil {
		t.Error("it is judged again")
	}
}
