package door

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door/doortest"
	"spamgate/smtpfilter"
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
	if m.Recipient("you@example.net").Reply.Code != 550 || m.judged.Judge.Generation() != generation {
		t.Error("the message is another one")
	}
	if _, err := m.judged.Judge.Judge(t.Context(), nil, verdict.Query{}); err == nil {
		t.Error("it is judged again")
	}
}

// TestOncePresentLists: a recipient for whom something else counts than for those before is judged
// by the present lists, and the Set is not kept.
func TestOncePresentLists(t *testing.T) {
	set := func(own string) *blocklist.Set {
		c, err := doortest.New(doortest.List{Name: "own", Entries: own, List: store.List{Action: verdict.Reject, PerRecipient: true}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Set()
	}
	sets := &changing{set("bob@example.net a@clean.example\n")}
	d := New(Config{Protocol: "policy_service", Once: true}, Settings{Checker: judge.Checker{Store: sets}})
	m := d.Begin(t.Context(), Envelope{From: "a@clean.example"})
	want := func(local string, code int) {
		t.Helper()
		if got := m.Recipient(local + "@example.net").Reply.Code; got != code {
			t.Errorf("%s: %d, want %d", local, got, code)
		}
	}
	want("you", 0)
	want("ann", 0)
	want("bob", 550)
	sets.set = set("ann@example.net a@clean.example\nbob@example.net other.example\n")
	present := weak.Make(sets.set)
	want("ann", 550)
	want("bob", 550) // as before: the same counts for him, and the message is one
	want("you", 0)
	sets.set = nil
	runtime.GC()
	runtime.GC()
	if present.Value() != nil {
		t.Error("the Set is still in memory")
	}
	runtime.KeepAlive(m)
}

// TestOnceManyRecipients: a message that is remembered keeps few classes, whoever its recipients are.
func TestOnceManyRecipients(t *testing.T) {
	var entries strings.Builder
	for i := range 100 {
		fmt.Fprintf(&entries, "r%d@example.net a@news.example\n", i)
	}
	c, err := doortest.New(doortest.List{Name: "own", Entries: entries.String(), List: store.List{Action: verdict.Reject, PerRecipient: true}})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Protocol: "policy_service", Once: true}, Settings{Checker: c})
	m := d.Begin(t.Context(), Envelope{From: "a@news.example"})
	var kept []weak.Pointer[smtpfilter.Class]
	for i := range 100 {
		rcpt := verdict.ParseRecipient(fmt.Sprintf("r%d@example.net", i))
		kept = append(kept, weak.Make(m.classOf(rcpt)))
		if m.Recipient(rcpt.Path).Reply.Code != 550 {
			t.Errorf("%s is not refused", rcpt.Path)
		}
	}
	runtime.GC()
	runtime.GC()
	n := 0
	for _, p := range kept {
		if p.Value() != nil {
			n++
		}
	}
	if n > maxRemembered+1 {
		t.Errorf("%d classes are in memory", n)
	}
	runtime.KeepAlive(m)
}
