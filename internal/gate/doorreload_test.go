package gate

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestKeepDoors: which settings each open door has after a reload, and what is logged.
func TestKeepDoors(t *testing.T) {
	door := func(words ...string) config.Door {
		return config.Door{Table: config.TablePolicyService, Name: words[0], Addr: words[1], Lists: words[2:]}
	}
	for _, test := range []struct {
		name             string
		open, file, want []config.Door
		logged           []string // parts of the lines
	}{
		{
			name: "in another order",
			open: []config.Door{door("a", ":1"), door("b", ":2", "old")},
			file: []config.Door{door("b", ":2"), door("a", ":1", "new")},
			want: []config.Door{door("a", ":1", "new"), door("b", ":2")},
		},
		{
			name:   "renamed, and one more",
			open:   []config.Door{door("a", ":1")},
			file:   []config.Door{door("more", "unix:/s"), door("other", ":1", "new")},
			want:   []config.Door{door("a", ":1", "new")},
			logged: []string{"new door is not open yet", "listener=more addr=unix:/s", "key=policy_service.name listener=a"},
		},
		{
			name:   "gone from the file, with a list, and with its only one",
			open:   []config.Door{door("a", ":1", "old", "new"), door("b", ":2", "old")},
			want:   []config.Door{door("a", ":1", "new"), door("b", ":2", "old")},
			logged: []string{"stays open", "door=policy_service listener=a addr=:1", "listener=b addr=:2"},
		},
		{
			name: "the same address",
			open: []config.Door{door("a", "[::1]:0"), door("b", "[::1]:0")},
			file: []config.Door{door("a", "[::1]:0", "new"), door("b", "[::1]:0", "old")},
			want: []config.Door{door("a", "[::1]:0", "new"), door("b", "[::1]:0", "old")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			g := &gate{config: &config.Config{Doors: test.open}, log: slog.New(slog.NewTextHandler(&log, nil))}
			c := &config.Config{Doors: test.file, Lists: []config.List{{Name: "new"}}}
			logDoorChanges(g.config.Doors, c.Doors, g.log)
			keepDoors(c, g.config)
			got := fmt.Sprint(c.Doors)
			if want := fmt.Sprint(test.want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			for _, part := range test.logged {
				if !strings.Contains(log.String(), part) {
					t.Errorf("logged %q, want %q", log.String(), part)
				}
			}
			if lines := strings.Count(log.String(), "\n"); lines > len(slices.Compact(test.logged)) || test.logged == nil && lines > 0 {
				t.Errorf("logged %q", log.String())
			}
		})
	}
}
