package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/fleet/fleettest"
)

// readerPermissions are those of docs/fleet.md.
func readerPermissions() *server.Permissions {
	const api = "$JS.API."
	publish := []string{"$JS.FC.>", "$KV." + bucketMembers + ".>", api + "INFO", api + "STREAM.INFO.*", api + "CONSUMER.INFO.*.*", api + "CONSUMER.DELETE.*.*"}
	for _, stream := range streams[:3] {
		publish = append(publish, api+"STREAM.MSG.GET."+stream)
		for _, read := range []string{"CONSUMER.CREATE.", "DIRECT.GET."} {
			publish = append(publish, api+read+stream, api+read+stream+".>")
		}
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", "spamgate.ask.>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
	}
}

// kept is a log that a test reads.
type kept struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}

// TestReaderKeepsQuiet has a gate that only reads, on two connections: apart from the probe it
// tries nothing that its credentials do not permit.
func TestReaderKeepsQuiet(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "all", Password: "secret"}, {Username: "reader", Password: "secret", Permissions: readerPermissions()}}
	})
	log := &kept{}
	as := func(user string) func(*Options) {
		return func(o *Options) {
			fetched(o)
			o.Servers = []string{strings.Replace(s.URL(), "//", "//"+user+":secret@", 1)}
		}
	}
	a := newGate(t, "a", s, as("all"))
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a)
	b := startGate(t, "b", s, func(o *Options) {
		as("reader")(o)
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	has(t, "blocked", "one@example.net\n", b)
	works := func() {
		t.Helper()
		eventually(t, "b knows that it only reads", func() bool { s := b.Status(); return s.Connected && s.ReadOnly })
		_, membersErr := b.Members(t.Context())
		_, askErr := b.Ask(t.Context(), "lists", nil)
		setErr := b.SetState(t.Context(), "gate.b", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		for _, err := range []error{membersErr, askErr, setErr} {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("got %v", err)
			}
		}
		b.sayMissing()
		signs := map[time.Time]bool{} // in whose time b would renew leases, too
		eventually(t, "a sees signs of life of b", func() bool {
			members, _ := a.Members(t.Context())
			for _, p := range members {
				if p.Name == "b" && p.ReadOnly {
					signs[p.Time] = true
				}
			}
			return len(signs) > 5
		})
	}
	works()
	s.Stop()
	s.Restart()
	works()

	// Alone with servers that have lost the bucket of signs of life, b does not make it.
	a.stop()
	s.Stop()
	s.Restart()
	var buckets *buckets
	eventually(t, "b knows again that it only reads", func() (known bool) {
		var err error
		buckets, err = b.open()
		return err == nil && b.counters.connects.Load() == 3 && b.Status().ReadOnly
	})
	for range 3 { // the first finds out that the bucket is gone
		b.show(t.Context(), buckets)
	}
	b.stop()
	if text := log.String(); strings.Contains(text, "do not permit") || !strings.Contains(text, "this gate only reads") {
		t.Errorf("the log has\n%s", text)
	}
}
