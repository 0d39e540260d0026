package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// TestStuckState has values in the fleet that a gate has not noted: it can change them.
func TestStuckState(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	unusable := errors.New("this gate does not have the version")
	a := startGate(t, "a", s, func(o *Options) {
		impatient(o)
		taken := o.StateChanged
		o.StateChanged = func(key string, value json.RawMessage) error {
			switch string(value) {
			case `"unusable"`:
				return unusable
			case `"unneeded"`:
				return ErrNotShared
			}
			return taken(key, value)
		}
	})
	equal(t, "blocked", a)
	b, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	value := func(sequence uint64, text string) string {
		return fmt.Sprintf(`{"format":1,"sequence":%d,"time":"2026-01-02T03:04:05Z","member":"x","value":%q}`, sequence, text)
	}
	for i, c := range []struct {
		theirs string
		want   uint64 // sequence
		fails  error
	}{
		{"", 2, nil},
		{"damaged", 2, nil},
		{value(7, "unusable"), 8, nil},
		{value(7, "unneeded"), 8, nil},
		{value(7, "usable"), 8, nil},
		{value(maxSequence, "used up"), 2, nil},
		{`{"format":99}`, 0, errNewer},
	} {
		for _, known := range []bool{false, true} {
			key := StateKey("pin", fmt.Sprintf("list%d%v", i, known))
			set := func(text string) error {
				return a.SetState(t.Context(), key, func(json.RawMessage) (json.RawMessage, error) { return json.Marshal(text) })
			}
			want := c.want
			if known {
				if err := set("own"); err != nil {
					t.Fatal(err)
				}
			} else if want == 2 {
				want = 1
			}
			if c.theirs != "" {
				if _, err := b.state.Put(t.Context(), key, []byte(c.theirs)); err != nil {
					t.Fatal(err)
				}
			}
			if err := set("now"); !errors.Is(err, c.fails) {
				t.Errorf("%s (known: %v): %v", c.theirs, known, err)
				continue
			}
			if c.fails != nil {
				continue
			}
			e, err := b.state.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if shared, err := parseShared(e.Key(), e.Value()); err != nil || string(shared.Value) != `"now"` || shared.Sequence != want && shared.Sequence != want+1 {
				t.Errorf("%s (known: %v): then the fleet has %s", c.theirs, known, e.Value())
			}
		}
	}
}
