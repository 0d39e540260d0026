package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStateStop stops gates in order while their state directory takes nothing: its
// disk is full, or read-only by then. What matched since the last save is lost, the
// log says so, and the exit code is 0: all clients have their answers.
func TestStateStop(t *testing.T) {
	t.Parallel()
	privateMounts(t)
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
			g := newStateGate(t, "1m")
			g.change("first", smallEntries)
			g.start()
			g.wantHistory(1)
			g.stop() // or the mount is busy with what it builds
			g.start()
			waitVerdict(t, g.addr, "x@first0.example", "550")
			tt.spoil(g)
			g.signal(sig)
			if code := g.wait(); code != 0 {
				t.Errorf("%s, %v: exit code %d", tt.name, sig, code)
			}
			said := g.records("stopped, but not in order")
			hits := 0
			for _, r := range said {
				if strings.Contains(r.string("error"), "hits of list") && strings.Contains(r.string("error"), tt.want) {
					hits++
				}
			}
			if hits != 1 {
				t.Errorf("%s, %v: the log says %v", tt.name, sig, said)
			}
			tt.mend(g)
			g.start()
			waitVerdict(t, g.addr, "x@first0.example", "550")
			g.stop()
		}
	}
}
