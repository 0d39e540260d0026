package local

import (
	"context"
	"fmt"
	"io"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// BuildSet builds a Set with a progress bar on w for each list that it reads.
func BuildSet(ctx context.Context, c store.Config, w io.Writer) (*blocklist.Set, []blocklist.ListStats, error) {
	var bar *term.FileProgress
	finish := func() {
		if bar != nil {
			bar.Finish()
		}
	}
	defer finish()
	c.Follow = func(path string, from io.Reader) io.Reader {
		finish()
		bar = term.NewFileProgress(w, path)
		return bar.Reader(from, path)
	}
	return store.Build(ctx, c)
}

// ReadLists reads the lists as a start of the gate would, and reports their problems on stderr.
func ReadLists(ctx context.Context, c *config.Config, stderr io.Writer) (*blocklist.Set, error) {
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		return nil, err
	}
	lists.ReadOnly = true
	set, stats, err := BuildSet(ctx, lists, stderr)
	if err != nil {
		return nil, setup.ExplainMissing(c, err)
	}
	for _, l := range stats {
		if l.Invalid > 0 {
			fmt.Fprintf(stderr, "spamgate: list %s: %s skipped; see spamgate config check\n", l.Name, text.Count(l.Invalid, "invalid line", "invalid lines"))
		}
		switch {
		case l.Err != nil && l.LastGood:
			fmt.Fprintf(stderr, "spamgate: list %s: its last good version serves: %v\n", l.Name, l.Err)
		case l.Err != nil:
			fmt.Fprintf(stderr, "spamgate: list %s: %v\n", l.Name, l.Err)
		}
	}
	return set, nil
}
