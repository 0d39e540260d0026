package gate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestApply has parts fail: what is prepared is discarded, the last part's first, and nothing is
// installed.
func TestApply(t *testing.T) {
	for _, test := range []struct{ fails, want string }{
		{"", "prepare a, prepare b, prepare c, load b, commit a, commit b, commit c, retire a, retire b, retire c"},
		{"retire a", "prepare a, prepare b, prepare c, load b, commit a, commit b, commit c, retire a, retire b, retire c"},
		{"prepare a", "prepare a"},
		{"prepare c", "prepare a, prepare b, prepare c, discard b, discard a"},
		{"load b", "prepare a, prepare b, prepare c, load b, discard c, discard b, discard a"},
	} {
		var did []string
		failed := errors.New("it fails")
		do := func(what string) error {
			did = append(did, what)
			if what == test.fails {
				return failed
			}
			return nil
		}
		before, c := &config.Config{}, &config.Config{}
		g := &gate{config: before, log: slog.New(slog.DiscardHandler), parts: []part{{name: "one without a configuration"}}}
		for _, name := range []string{"a", "b", "c"} {
			g.parts = append(g.parts, part{name: name, prepare: func(_ context.Context, was, current *config.Config) (change, error) {
				if was != before || current != c {
					t.Errorf("%s: another configuration", name)
				}
				ch := change{
					commit:  func() { _ = do("commit " + name) },
					discard: func() error { return do("discard " + name) },
					retire:  func() error { return do("retire " + name) },
				}
				if name == "b" {
					ch.load = func(context.Context) error { return do("load b") }
				}
				return ch, do("prepare " + name)
			}})
		}
		err := g.apply(t.Context(), c)
		if got := strings.Join(did, ", "); got != test.want {
			t.Errorf("%q fails:\ngot  %s\nwant %s", test.fails, got, test.want)
		}
		works := strings.Contains(test.want, "commit")
		if works != (err == nil) || !works && !errors.Is(err, failed) || works != (g.config == c) {
			t.Errorf("%q fails: %v", test.fails, err)
		}
	}
}
