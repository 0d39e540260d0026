package gate

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/config"
)

// TestAwaitFirst waits in vain for a list that the gate never had, and not for one that has an
// entry.
func TestAwaitFirst(t *testing.T) {
	for name, test := range map[string]struct {
		file  string
		waits bool
	}{
		"empty":          {"# kept by spamgate\n", true},
		"with an entry":  {"# kept by spamgate\none@example.net\n", false},
		"a strange file": {strings.Repeat("x", 2<<20), false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "managed", "shared.txt")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			c := &config.Config{
				State: config.State{Dir: dir},
				Fleet: config.Fleet{Name: "mx1", Servers: config.Addresses{"nats://127.0.0.1:1"}},
				Lists: []config.List{{Name: "shared", Managed: true, Fleet: true, Copy: path}},
			}
			var log bytes.Buffer
			f := newFleetPart(func() *config.Config { return c }, slog.New(slog.NewTextHandler(&log, nil)))
			defer f.close()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			f.awaitFirst(ctx, c, func(*config.Config) {})
			waited := strings.Contains(log.String(), `msg="waiting for the first version of shared lists" lists=shared at_most=30s`)
			without := strings.Contains(log.String(), `msg="serving without the first version of shared lists" lists=shared`)
			if waited != test.waits || without != test.waits || (f.unlock != nil) != test.waits {
				t.Errorf("waited %v, and serves without %v:\n%s", waited, without, &log)
			}
		})
	}
}
