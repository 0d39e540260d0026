package dirwatch

import "time"

const (
	// eventBurst is how many events are taken as fast as they come: more than an
	// edit of a list makes.
	eventBurst = 32

	// eventEvery is how often one more is taken after that.
	eventEvery = 250 * time.Millisecond
)

// quota bounds the file system events that are taken, as a bucket of tokens.
type quota struct {
	left    int       // tokens in the bucket
	counted time.Time // until when tokens have been put in
}

// take takes a token, and reports whether there was one.
func (q *quota) take(now time.Time) bool {
	if n := now.Sub(q.counted) / eventEvery; n >= eventBurst {
		q.left, q.counted = eventBurst, now
	} else {
		q.left = min(q.left+int(n), eventBurst)
		q.counted = q.counted.Add(n * eventEvery)
	}
	if q.left == 0 {
		return false
	}
	q.left--
	return true
}
