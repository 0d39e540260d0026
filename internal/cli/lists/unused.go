package lists

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/hits"
	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsUnusedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unused [LIST...]",
		Short: "Find entries that have not matched any mail for some time",
		Long: `Find entries that have not matched any mail since a day: candidates for removal.
The default is all lists. Each line of output has the file and line number, the
entry, and the day of its last known match, separated by tabs.

A gate records which entries match while it runs. If the records do not go back
to that day, the command prints nothing, since they would miss earlier matches.
With [filter] confirm = false nothing is recorded.

Days are in UTC. Exit codes: 0 success; 2 not known, or an error.`,
		Example: `  spamgate lists unused --since 30d
  spamgate lists unused blocked --since 2026-01-01 --json`,
	}
	var f listsFlags
	f.addJSON(cmd)
	since := cmd.Flags().String("since", "30d", "since when: `TIME`, as in 30d, or a day")
	f.runs(cmd, func(s *session, args []string) error {
		day, err := parseSince(*since, time.Now())
		if err != nil {
			return err
		}
		if len(args) == 0 {
			args = setup.ListNames(listfiles.WithFiles(s.config))
		}
		for _, name := range args {
			if _, err := listfiles.Find(s.config, name); err != nil {
				return err
			}
		}
		u := &unusedRun{json: f.json, out: bufio.NewWriter(term.Escape(s.cmd.OutOrStdout())), stderr: s.stderr}
		err = u.run(s, s.config, args, day)
		return errors.Join(err, u.out.Flush())
	})
	return cmd
}

// parseSince parses a day in the past.
func parseSince(s string, now time.Time) (time.Time, error) {
	day, err := cli.ParseSince(s, now)
	if err == nil && hits.DayOf(day) == 0 { // the day of what has never matched
		err = fmt.Errorf("--since %s: no gate ran in %d: ask for a later day", s, day.Year())
	}
	return day, err
}

// unusedRun is one run of unused.
type unusedRun struct {
	json   bool
	out    *bufio.Writer
	stderr io.Writer
}

// unusedSource returns the unused entries of a list, from the gate or from disk.
type unusedSource func(ctx context.Context, list string, since time.Time, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error)

func (u *unusedRun) run(ctx context.Context, c *config.Config, names []string, since time.Time) error {
	ask, from, end, err := unusedFrom(ctx, c, u.stderr)
	if err != nil {
		return err
	}
	defer end()
	for _, name := range names {
		if err := u.list(ctx, ask, from, name, since); err != nil {
			return err
		}
	}
	return nil
}

// unusedFrom returns the source of unused entries: the running gate, or else what the last
// gate stored on disk.
func unusedFrom(ctx context.Context, c *config.Config, stderr io.Writer) (ask unusedSource, from string, end func(), err error) {
	gate := cli.DialGate(c)
	if gate.Client != nil {
		return gate.Client.Unused, "the running gate", gate.Close, nil
	}
	gate.Warn(stderr)
	from = "no gate is running: what the last one has recorded"
	if gate.Err != nil {
		from = "what a gate has recorded on disk"
	}
	set, _, err := buildReadOnly(ctx, c, stderr)
	if err != nil {
		return nil, "", nil, err
	}
	key, _ := report.HitsKey(set)
	ask = func(ctx context.Context, name string, since time.Time, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error) {
		if err := report.CheckConfirms(c, name); err != nil {
			return admin.UnusedEnd{}, err
		}
		kept, err := hits.Read(c.State.Dir, report.HitsName(name), key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return admin.UnusedEnd{}, fmt.Errorf("list %s: no gate has recorded a match yet: run one for a while, and ask then", name)
		case errors.Is(err, hits.ErrKey):
			return admin.UnusedEnd{}, fmt.Errorf("list %s: %w: the key in %s has been replaced, or cannot be read (run this as the gate's user)", name, err, c.State.Dir)
		case err != nil:
			return admin.UnusedEnd{}, fmt.Errorf("list %s: what a gate has recorded of matches cannot be used: %w", name, err)
		}
		return report.UnusedEntries(ctx, set, name, kept, since, begin, each)
	}
	return ask, from, func() {}, nil
}

// maxSorted bounds the entries that are sorted by file and line before they are printed.
// If there are more, the rest is printed in the order of the index.
const maxSorted = 1 << 20

// unusedLine is an entry for programs.
type unusedLine struct {
	List string `json:"list"`
	admin.UnusedEntry
}

// list prints the entries of one list.
func (u *unusedRun) list(ctx context.Context, ask unusedSource, from, name string, since time.Time) error {
	var waiting []admin.UnusedEntry
	sorted := true
	flush := func() error {
		slices.SortFunc(waiting, func(a, b admin.UnusedEntry) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		for _, e := range waiting {
			if err := u.print(name, e); err != nil {
				return err
			}
		}
		waiting = nil
		return nil
	}
	end, err := ask(ctx, name, since,
		func(h admin.UnusedHeader) error {
			if h.Known > h.Since { // days as they are written sort as they come
				return fmt.Errorf("list %s: matches since %s are not known, only those since %s: ask with --since %s, or again later", name, h.Since, h.Known, h.Known)
			}
			return nil
		},
		func(e admin.UnusedEntry) error {
			if !sorted {
				return u.print(name, e)
			}
			if waiting = append(waiting, e); len(waiting) < maxSorted {
				return nil
			}
			sorted = false
			return flush()
		})
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	if !u.json {
		// The entries are standard output; this is for people.
		if err := u.out.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(u.stderr, "list %s: %s of %s have not matched since %s (%s)\n", name,
			text.Number(end.Unused), text.Number(end.Entries), hits.DayOf(since), from)
	}
	return nil
}

func (u *unusedRun) print(list string, e admin.UnusedEntry) error {
	if u.json {
		j := json.NewEncoder(u.out)
		j.SetEscapeHTML(false)
		return j.Encode(unusedLine{list, e})
	}
	last := e.Last
	if last == "" {
		last = "never"
	}
	_, err := fmt.Fprintf(u.out, "%s:%d\t%s\t%s\n", term.ShortPath(e.File), e.Line, e.Entry, last)
	return err
}
