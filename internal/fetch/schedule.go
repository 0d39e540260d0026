package fetch

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// firstRetry is the time after a failure; it doubles with each further one,
	// up to the time between two refreshes.
	firstRetry = time.Minute

	// maxRetryAfter bounds how long a server may ask to be left alone: a list
	// must not rest for a year since its server was wrong once.
	maxRetryAfter = 24 * time.Hour
)

// nextDelay returns the time to the next try, after so many failures.
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

// jitter lengthens a delay by a tenth at most, so that the servers of lists don't
// see everyone at the full hour. It shortens none: nobody is asked more often
// than configured.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1)
}
