package fleet

import (
	"fmt"
	"os"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/fleet/fleettest"
)

// TestPutBack puts an older store in the place of the server's while the gates cannot see it. It
// has new revisions of other lists: the gates notice nevertheless that theirs is older there, and
// publish what they have.
func TestPutBack(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a, b)
	s.Stop()
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(s.Dir())); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	for i := range 3 {
		a.mustAdd("blocked", fmt.Sprintf("edit%d@example.net", i))
	}
	want := equal(t, "blocked", a, b)
	s.Stop()
	other := fleettest.Start(t, func(o *server.Options) { o.StoreDir = older })
	kv, err := client(t, other).KeyValue(t.Context(), bucketLists)
	for i := 0; i < 10 && err == nil; i++ {
		_, err = kv.PutString(t.Context(), "list.other", fmt.Sprint(i))
	}
	if err != nil {
		t.Fatal(err)
	}
	other.Stop()
	if err := os.RemoveAll(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(s.Dir(), os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if got := equal(t, "blocked", a, b); got.SHA256 != want.SHA256 {
		t.Errorf("the gates have %v, and had %v", got, want)
	}
	if kv, err = client(t, s).KeyValue(t.Context(), bucketLists); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has the newest again", func() bool {
		entry, err := kv.Get(t.Context(), "list.blocked")
		if err != nil {
			return false
		}
		v, err := parseVersion(entry.Value(), "blocked", Managed)
		return err == nil && v.SHA256 == want.SHA256
	})
	b.mustAdd("blocked", "last@example.net")
	equal(t, "blocked", a, b)
}
