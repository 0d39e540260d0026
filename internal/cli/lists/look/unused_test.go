package look

import (
	"strings"
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	for text, want := range map[string]string{"30d": "2026-10-23", "2026-01-01": "2026-01-01", "1970-01-03": "1970-01-03"} {
		if got, err := parseSince(text, now); err != nil || got.Local().Format(time.DateOnly) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"0d":                   "is now",
		"2027-01-01":           "still to come",
		"0001-01-01":           "no gate ran in 1",
		"1970-01-01T00:00:00Z": "no gate ran in 1970",
		"60000d":               "no gate ran in 1862",
		"65000w":               "--since: \"65000w\" is not a time",
	} {
		if got, err := parseSince(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, got, err, want)
		}
	}
}
