package reference

import (
	"strings"
	"testing"

	"spamgate/internal/config"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ table, key, want string }{
		{"", "hostname", "The gate's own name"},
		{"listen", "max_hops", "The most Received: fields"},
		{"listen", "addr", "Where clients connect, how they are served"},
		{"listen", "max_connections", "## Limits of clients\n\n0 is no limit. Each"},
		{"listener", "max_hops", "The most Received: fields"},
		{"listener", "name", "One more listener, with an addr of its own."},
		{"list", "min_entries", "The least plausible"},
	} {
		if got := strings.Join(Explain(c.table, c.key), "\n"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q", c.table, c.key, got)
		}
	}
	if got := Explain("listen", "client_messages_per_minute"); got != nil {
		t.Errorf("the second key of an entry repeats its text: %q", got)
	}
}

func TestSort(t *testing.T) {
	tables := []config.Table{{Name: "listener", Keys: []config.Key{{Name: "tarpit"}, {Name: "tls"}, {Name: "name"}}}}
	Sort(tables)
	var names []string
	for _, k := range tables[0].Keys {
		names = append(names, k.Name)
	}
	if got := strings.Join(names, " "); got != "name tls tarpit" {
		t.Errorf("got %s", got)
	}
}
