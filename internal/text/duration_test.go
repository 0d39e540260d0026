package text_test

import (
	"testing"
	"time"

	"spamgate/internal/text"
	"spamgate/internal/words"
)

// TestDuration: each text is parsed as the same duration.
func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", 5 * time.Minute: "5m", 90 * time.Minute: "1h30m", time.Hour: "1h", 500 * time.Millisecond: "500ms",
		day: "1d", 14 * day: "14d", 25 * time.Hour: "25h", day + time.Second: "24h0m1s", -time.Hour: "-1h",
	} {
		got := text.Duration(d)
		if back, ok := words.ParseDuration(got); got != want || !ok || back != d {
			t.Errorf("%v: %q, want %q; parsed as %v, %t", d, got, want, back, ok)
		}
	}
}
