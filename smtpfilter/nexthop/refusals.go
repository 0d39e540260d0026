package nexthop

import (
	"fmt"
	"sync"
	"time"

	"spamgate/smtpfilter/wire"
)

// A server that has lost its recipients refuses all of them, and looks healthy: it accepts MAIL.
// So the gate knows the share of recipients that were refused for good in the last ten minutes.
// Those with a 4xx do not count, since greylisting defers most.

// The share is a warning above suspectShare percent of at least suspectFrom recipients.
const (
	suspectShare = 90
	suspectFrom  = 50
)

// refusals counts recipients. The zero refusals is empty.
type refusals struct {
	clock func() time.Time // nil is time.Now

	mu      sync.Mutex
	minutes [10]struct {
		minute            int64 // since 1970
		answered, refused int
	}
	last string // reply
}

// now returns the present minute.
func (r *refusals) now() int64 {
	if r.clock != nil {
		return r.clock().Unix() / 60
	}
	return time.Now().Unix() / 60
}

// add counts the reply to recipients. Those that were accepted at RCPT are answered already if the
// reply is to their message.
func (r *refusals) add(answered, recipients int, reply wire.Reply) {
	if !reply.Positive() && !reply.Permanent() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	m := &r.minutes[now%int64(len(r.minutes))]
	if m.minute != now {
		m.minute, m.answered, m.refused = now, 0, 0
	}
	m.answered += answered
	if reply.Positive() {
		return
	}
	m.refused += recipients
	r.last = quote(reply)
}

// lately returns how many recipients were answered and refused in the last ten minutes, and a
// warning if these are too many.
func (r *refusals) lately() (answered, refused int, warning string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, m := range r.minutes {
		if now-m.minute < int64(len(r.minutes)) {
			answered, refused = answered+m.answered, refused+m.refused
		}
	}
	refused = min(refused, answered) // a message is refused later than its recipients are accepted
	if answered < suspectFrom || refused*100 <= answered*suspectShare {
		return answered, refused, ""
	}
	return answered, refused, fmt.Sprintf("it refused %d of %d recipients in the last 10 minutes, the last with %q; its recipients may be lost, or one client guesses addresses",
		refused, answered, r.last)
}
