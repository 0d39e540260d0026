package text

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDays parses a duration, which may also be one of days or weeks.
func ParseDays(s string) (time.Duration, bool) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			return time.Duration(n) * length, err == nil && n <= uint64(math.MaxInt64/length)
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}
