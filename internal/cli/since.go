package cli

import (
	"fmt"
	"time"

	"spamgate/internal/text"
)

// ParseSince parses a time in the past: a duration such as 30d or 24h before now, or a day (UTC).
func ParseSince(s string, now time.Time) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, s)
	if err != nil {
		ago, ok := text.ParseDays(s)
		if ok && ago == 0 {
			return day, fmt.Errorf("--since %s: that is now: ask for a time that is over, such as 1d or 30d", s)
		}
		if !ok || ago < 0 {
			return day, fmt.Errorf("--since %s: write a duration such as 30d or 720h, or a day such as %s", s, now.AddDate(0, 0, -30).Format(time.DateOnly))
		}
		day = now.Add(-ago)
	}
	if day.After(now) {
		return day, fmt.Errorf("--since %s: that is still to come", s)
	}
	return day, nil
}
