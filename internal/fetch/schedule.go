package fetch

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// firstRetry is the delay after a failure. It doubles with each further one, up to
	// the refresh interval.
	firstRetry = time.Minute

	// maxRetryAfter bounds the delay that a server may ask for, which may be an error.
	maxRetryAfter = 24 * time.Hour
)

// nextDelay returns the delay before the next fetch, after a number of failures.
func nextDelay(refresh time.Duration, failures int, err error) time.Duration {
	if failures == 0 {
		return jitter(refresh)
	}
	delay := firstRetry
	for range failures - 1 {
		if delay >= refresh {
			break
		}
		delay *= 2
	}
	delay = min(delay, refresh)
	if status := (*StatusError)(nil); errors.As(err, &status) {
		delay = max(delay, min(status.RetryAfter, maxRetryAfter))
	}
	return jitter(delay)
}

// jitter adds up to a tenth to a delay, so that not all gates fetch at the full hour. It
// shortens none, so no server gets more requests than configured.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1)
}
