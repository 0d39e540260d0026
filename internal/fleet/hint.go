package fleet

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// A watch may be deaf for ten seconds: a server that ends takes the consumers with it that it had
// for others, and the library waits for two heartbeats. So each change is also said aloud, and a
// member that does not hear of it from its watch opens another one.

// changedSubject is where members say what they have published. Credentials that only permit
// reading permit this subject as that of a question.
const changedSubject = askSubject + "changed"

// say says that the key of a list has a revision.
func (m *link) say(key string, revision uint64) {
	_ = m.nc.Publish(changedSubject, fmt.Appendf(nil, "%s %d", key, revision)) // the watch tells it, too
}

// hear waits for hints of changes, and signals on deaf if the watch has not told one of them
// soon.
func (m *Member) hear(deaf chan<- struct{}) (*nats.Subscription, error) {
	begun := time.Now()
	var waits atomic.Bool
	return m.nc.Subscribe(changedSubject, func(msg *nats.Msg) {
		var key string
		var revision uint64
		if _, err := fmt.Sscanf(string(msg.Data[:min(len(msg.Data), maxText)]), "%s %d", &key, &revision); err != nil {
			return
		}
		if waits.Load() || !m.misses(key, revision) || time.Since(begun) < 10*m.o.times.retry {
			return
		}
		waits.Store(true)
		time.AfterFunc(m.o.times.retry/2, func() {
			defer waits.Store(false)
			if !m.misses(key, revision) {
				return
			}
			select {
			case deaf <- struct{}{}:
			default:
			}
		})
	})
}

// misses reports whether a list does not know a revision of its key yet.
func (m *Member) misses(key string, revision uint64) bool {
	for _, l := range m.all() {
		if l.key != key {
			continue
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return l.remote == nil || l.remote.revision < revision
	}
	return false
}
