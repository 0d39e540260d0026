package gate

import (
	"slices"
	"strings"
	"testing"
)

// TestEnvironment: a successor does not take what systemd passed to this process for its own.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "OTHER_LISTEN_FDS"} {
		t.Setenv(name, "1")
	}
	all := environment()
	if i := slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, "LISTEN_") }); i >= 0 {
		t.Errorf("it gets %s", all[i])
	}
	if !slices.Contains(all, "OTHER_LISTEN_FDS=1") {
		t.Error("it lacks another variable")
	}
}
