package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"spamgate/internal/fleet/fleettest"
	"spamgate/internal/listedit"
)

// TestKilledInEdit ends a gate in an edit that the fleet has taken, before or after the file has it.
// Then the others make more edits than the fleet remembers: the next process sees by the file which
// version it has.
func TestKilledInEdit(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	a.write("blocked", "one@example.net\n")
	a.start()
	equal(t, "blocked", a, b)
	killed := errors.New("killed")
	for i, before := range []error{killed, nil} {
		_, err := listedit.Rewrite(t.Context(), a.path("blocked"), func(old io.ReadSeeker, w io.Writer) error {
			if _, err := io.Copy(w, old); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "killed%d@example.net\n", i)
			return err
		}, listedit.Options{StateDir: a.o.StateDir, Publish: func(ctx context.Context, c listedit.Change, old, content *os.File) error {
			if _, err := a.Publish(ctx, Edit{List: "blocked", Author: "ann", SHA256: c.SHA256, Size: c.Size, Old: old, New: content}); err != nil {
				t.Fatal(err)
			}
			return before
		}})
		if !errors.Is(err, before) {
			t.Fatal(err)
		}
		a.stop()
		for n := range historyOf + 5 {
			b.mustAdd("blocked", fmt.Sprintf("while%d-%d@example.net", i, n))
		}
		a.start()
		equal(t, "blocked", a, b)
	}
}
