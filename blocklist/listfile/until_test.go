package listfile

import (
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	current := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC).Unix()
	midnight := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for text, want := range map[string]int64{
		"example.com":                                            0,
		"example.com # until=2026-12-31":                         midnight, // through the day's end
		"example.com # until=2026-12-31T13:00:00Z":               current + 3600,
		"example.com # until=2026-12-31T13:00:00+01:00":          -1, // now: it no longer counts
		"example.com # until=2026-12-30":                         -1,
		"example.com # until=1970-01-01T00:00:00Z":               -1, // not 0, which is never
		"example.com # until=0001-01-01":                         -1,
		"example.com # until=2027-12-31 until=2026-12-31":        midnight,
		"example.com # until=2027-12-31 x ## y until=2026-12-31": midnight,
		"until=2026-12-30.example.com":                           -2, // invalid: no comment
	} {
		entries, problems, res := mustRead(t, text, Options{Now: current})
		switch {
		case want == -2:
			if len(problems) != 1 {
				t.Errorf("%q: %v, %v", text, entries, problems)
			}
		case want == -1:
			if len(entries)+len(problems) != 0 || res.Expired != 1 {
				t.Errorf("%q: %+v, %v, %+v", text, entries, problems, res)
			}
		case len(entries) != 1 || entries[0].Until != want || res.Expired != 0:
			t.Errorf("%q: %+v, %v, want until %d", text, entries, problems, want)
		}
	}
}
