package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestEntranceChanges: which settings each open listener has after a reload.
func TestEntranceChanges(t *testing.T) {
	listener := func(s string) config.Listener {
		words := strings.Split(s, " ")
		l := config.Listener{Name: words[0]}
		l.Addr = strings.Split(words[1], ",")
		l.TLS = words[2]
		l.Lists = words[3:]
		return l
	}
	for _, test := range []struct {
		name                    string
		open, file, lists, want []string
	}{
		{
			name: "in another order",
			open: []string{"mx :25 none", "submission :587 required"},
			file: []string{"submission :587 starttls", "mx :25 implicit"},
			want: []string{"mx [:25] implicit []", "submission [:587] starttls []"},
		},
		{
			name: "renamed, and one more, which takes a restart",
			open: []string{"mx :25,:26 none"},
			file: []string{"more :465 implicit", "in :25,:26 none"},
			want: []string{"in [:25 :26] none []"},
		},
		{
			name: "the same addresses",
			open: []string{"a [::1]:0 none", "b [::1]:0 implicit"},
			file: []string{"a [::1]:0 none", "b [::1]:0 starttls"},
			want: []string{"a [[::1]:0] none []", "b [[::1]:0] starttls []"},
		},
		{
			name:  "gone from the file, with a list, and with its only one",
			open:  []string{"mx :25 none old blocked", "in :26 none old"},
			lists: []string{"new", "blocked"},
			want:  []string{"mx [:25] none [blocked]", "in [:26] none []"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, c := &gate{}, &config.Config{}
			for _, s := range test.open {
				g.listeners = append(g.listeners, &runningListener{config: listener(s)})
			}
			for _, s := range test.file {
				c.Listeners = append(c.Listeners, listener(s))
			}
			for _, name := range test.lists {
				c.Lists = append(c.Lists, config.List{Name: name})
			}
			var got []string
			g.listeners.keep(c)
			for _, l := range c.Listeners {
				got = append(got, fmt.Sprint(l.Name, " ", l.Addr, " ", l.TLS, " ", l.Lists))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestRestartKeys compares the keys that a reload keeps with those that are said to need a
// restart.
func TestRestartKeys(t *testing.T) {
	old, current := config.Default(), config.Default()
	current.Hostname, current.State.Dir, current.Log.Level, current.Console.SocketGroup = "other.example", "/other", "debug", "other"
	current.Listeners = []config.Listener{{Endpoint: config.Endpoint{Addr: []string{"192.0.2.1:25"}}}}
	keys := restartKeys(&old, &current)
	if len(keys) != 5 {
		t.Errorf("a reload keeps %q", keys)
	}
	for _, key := range keys {
		table, name, ok := strings.Cut(key, ".")
		switch {
		case !ok && key == "log":
			table, name = key, "level"
		case !ok:
			table, name = "", key
		}
		if !config.NeedsRestart(table, name) {
			t.Errorf("%s needs no restart", key)
		}
	}
	if config.NeedsRestart("list", "name") || config.NeedsRestart("console", "addr") || config.NeedsRestart("fleet", "servers") {
		t.Error("keys that a reload changes need a restart")
	}
}
