package managed

import (
	"testing"
	"time"
)

// TestUntilText: an entry that ends at midnight has the day before as its last one.
func TestUntilText(t *testing.T) {
	midnight := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, end := range map[string]time.Time{"": {}, "2098-12-31": midnight, "2099-01-01T00:00:01Z": midnight.Add(time.Millisecond)} {
		if got := untilText(end); got != want {
			t.Errorf("%v: %q, want %q", end, got, want)
		}
	}
}
