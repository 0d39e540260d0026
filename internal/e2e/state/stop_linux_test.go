package state

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// TestStateStop stops gates whose state directory is full or read-only. The log says
// that the matches since the last save are lost. The exit code is 0, because all clients
// have their replies.
func TestStateStop(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	for _, tt := range []struct {
		name string
		spoil,
		mend func(g *stateGate)
		want string
	}{
		{
			"full",
			func(g *stateGate) {
				filler, err := os.Create(filepath.Join(g.state, "filler"))
				if err != nil {
					t.Fatal(err)
				}
				defer filler.Close()
				for err == nil {
					_, err = filler.Write(make([]byte, 4<<10))
				}
			},
			func(g *stateGate) { os.Remove(filepath.Join(g.state, "filler")) },
			"no space left on device",
		},
		{
			"read-only",
			func(g *stateGate) { remount(t, g.state, unix.MS_BIND|unix.MS_RDONLY, "") },
			func(g *stateGate) { remount(t, g.state, unix.MS_BIND, "") },
			"read-only file system",
		},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			g := newStateGate(t, "1m", noHistory)
			g.change("first", smallEntries)
			g.start()
			g.wantHistory(1)
			g.Stop() // it keeps open what it has built, and the mount would be busy
			g.start()
			harness.WaitVerdict(t, g.Addr, "x@first0.example", "550")
			tt.spoil(g)
			g.Signal(sig)
			if code := g.Wait(); code != 0 {
				t.Errorf("%s, %v: exit code %d", tt.name, sig, code)
			}
			records := g.Records("stopped, but not in order")
			hits := 0
			for _, r := range records {
				if strings.Contains(r.Text("error"), "hits of list") && strings.Contains(r.Text("error"), tt.want) {
					hits++
				}
			}
			if hits != 1 {
				t.Errorf("%s, %v: the log says %v", tt.name, sig, records)
			}
			tt.mend(g)
			g.start()
			harness.WaitVerdict(t, g.Addr, "x@first0.example", "550")
			g.Stop()
		}
	}
}
