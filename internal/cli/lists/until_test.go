package lists

import (
	"strings"
	"testing"
	"time"

	"spamgate/internal/cli"
)

func TestParseDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "30d": 30 * day, "2w": 14 * day, "90m": 90 * time.Minute, "0d": 0, "15250w": 15250 * 7 * day,
	} {
		if got, ok := cli.ParseDays(text); !ok || got != want {
			t.Errorf("%s: %v, %t", text, got, ok)
		}
	}
	// More than a time.Duration holds is not some other time.
	for _, text := range []string{"", "d", "-1d", "1.5d", "15251w", "65000w", "65536d", "1y"} {
		if got, ok := cli.ParseDays(text); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"30d": "2026-10-23", "2026-01-01": "2026-01-01", "1970-01-02": "1970-01-02"} {
		if got, err := parseSince(text, now); err != nil || got.Format(time.DateOnly) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"0d":         "that is now",
		"2027-01-01": "still to come",
		"0001-01-01": "no gate ran in 1",
		"1970-01-01": "no gate ran in 1970",
		"60000d":     "no gate ran in 1862",
		"65000w":     "write a duration such as 30d",
	} {
		if got, err := parseSince(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, got, err, want)
		}
	}
}
