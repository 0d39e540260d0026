package text

import (
	"testing"
	"time"
)

func TestParseDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "30d": 30 * day, "2w": 14 * day, "90m": 90 * time.Minute, "0d": 0, "15250w": 15250 * 7 * day,
	} {
		if got, ok := ParseDays(text); !ok || got != want {
			t.Errorf("%s: %v, %t", text, got, ok)
		}
	}
	// More than a time.Duration holds is not some other time.
	for _, text := range []string{"", "d", "-1d", "1.5d", "15251w", "65000w", "65536d", "1y"} {
		if got, ok := ParseDays(text); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestDuration: each text is parsed as the same duration.
func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", 5 * time.Minute: "5m", 90 * time.Minute: "1h30m", time.Hour: "1h", 500 * time.Millisecond: "500ms",
		day: "1d", 14 * day: "14d", 25 * time.Hour: "25h", day + time.Second: "24h0m1s", -time.Hour: "-1h",
	} {
		got := Duration(d)
		if back, ok := ParseDays(got); got != want || !ok || back != d {
			t.Errorf("%v: %q, want %q; parsed as %v, %t", d, got, want, back, ok)
		}
	}
}
