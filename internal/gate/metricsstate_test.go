package gate

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"spamgate/internal/config"
)

// TestStateProbe removes a state directory. The metric shows that within a minute, and the
// directory is tried no more often than that.
func TestStateProbe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := &stateCollector{gate: &adminHandler{}}
	c.gate.current.Store(&activeConfig{config: &config.Config{State: config.State{Dir: dir}}})
	now := time.Now()
	for _, step := range []struct {
		after  time.Duration
		remove bool
		want   float64
	}{{0, false, 1}, {time.Second, true, 1}, {stateProbeEvery - 2*time.Second, true, 1}, {2 * time.Second, true, 0}} {
		now = now.Add(step.after)
		if step.remove {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		if usable, _ := c.probe(now); usable != step.want {
			t.Errorf("after %v: %v, want %v", step.after, usable, step.want)
		}
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}
