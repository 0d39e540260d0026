package fetch

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A server that can wait answers a question for a new signature when there is one, or after
// longestWait. It is asked by a preference of RFC 7240, section 4.3, and says so in
// Preference-Applied. The answer starts a fetch, and means nothing else.
const (
	longestWait = 50 * time.Second // below the stallTimeout
	preferNow   = "wait=0"

	// leastWait is the time between a fetch and the next question. It doubles twice with
	// each failed fetch, and once with each failed question or wait without news in a row.
	leastWait = 200 * time.Millisecond
	mostWait  = 10 * time.Second
)

// canWait reports whether a response says that the server can wait.
func canWait(h http.Header) bool {
	for _, value := range h.Values("Preference-Applied") {
		for part := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(part, "=")
			if strings.EqualFold(strings.TrimSpace(name), "wait") {
				return true
			}
		}
	}
	return false
}

// rest waits for the next fetch: until its time, or until a server that can wait has a new
// version.
func (l *loop) rest(ctx context.Context, status Status) {
	ctx, cancel := context.WithDeadline(ctx, status.NextTry)
	defer cancel()
	st, err := loadState(l.source)
	switch {
	case st.SignatureSum != l.known:
		l.known, l.inVain = st.SignatureSum, 0
	case l.woken:
		l.inVain++
	}
	l.woken = false
	if err == nil && st.Waits && pause(ctx, leastWait<<min(max(2*status.Failures, l.inVain), 16)) {
		l.woken = l.awaitNew(ctx, st)
		return
	}
	<-ctx.Done()
}

// awaitNew waits until the server has a signature that is neither that of the copy nor the
// one that ended the wait before, or for the end of the context. It reports whether there is one.
func (l *loop) awaitNew(ctx context.Context, known state) bool {
	_, signatureURL, err := l.source.parse()
	if err != nil {
		<-ctx.Done()
		return false
	}
	seen, failures := known.Signature, 0
	if l.seen != "" {
		seen = l.seen
	}
	prefer := fmt.Sprintf("wait=%d", int(min(longestWait, l.source.Timeout/2).Seconds()))
	for {
		asked := time.Now()
		asking, cancel := context.WithTimeout(ctx, longestWait+stallTimeout)
		signed, err := l.fetcher.signature(asking, l.source, signatureURL, condition{etag: seen, prefer: prefer})
		cancel()
		switch {
		case err != nil:
			failures++
		case signed.notModified && time.Since(asked) < time.Second:
			failures++ // it has no place for those who wait
		case signed.notModified:
			failures = 0
		case !signed.waits || signed.etag == "":
			<-ctx.Done() // the next fetch learns what the server can do now
			return false
		case signed.etag != seen && signed.sum() != known.SignatureSum:
			l.seen = signed.etag
			return true
		default:
			failures++ // it ignores the condition, or has another name for the same signature
			seen = signed.etag
		}
		if !pause(ctx, min(leastWait<<min(failures, 16), mostWait)) {
			return false
		}
	}
}

// pause waits for a time, and reports whether it has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
