package look

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/hits"
	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listfiles"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
	"spamgate/internal/words"
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

For a list with fleet = true it asks all gates: an entry is unused if it matched
on none. If one does not answer, or its records do not go back to that day, the
command names it: then entries that it prints may have matched there, and must
not be removed for that. With --here only this gate's matches count. The JSON of
such a list begins with a line that has "fleet" and no "entry". The day of the
last match is this gate's.

Matches are recorded by days in UTC. Exit codes: 0 success; 1 not all gates of
the fleet have answered; 2 not known, or an error.`,
		Example: `  spamgate lists unused --since 30d
  spamgate lists unused blocked --since 2026-01-01 --json
  spamgate lists unused shared --here`,
	}
	var f session.Flags
	f.AddJSON(cmd)
	here := cmd.Flags().Bool("here", false, "only what matched on this gate, not on others of the fleet")
	since := cmd.Flags().String("since", "30d", "since when: `TIME`, as in 30d, or a day")
	f.Runs(cmd, func(s *session.Session, args []string) error {
		day, err := parseSince(*since, time.Now())
		if err != nil {
			return err
		}
		if len(args) == 0 {
			args = setup.ListNames(listfiles.WithFiles(s.Config))
		}
		for _, name := range args {
			if _, err := listfiles.Find(s.Config, name); err != nil {
				return err
			}
		}
		u := &unusedRun{Session: s, here: *here, out: bufio.NewWriter(term.Escape(s.Cmd.OutOrStdout()))}
		err = u.run(args, day)
		if err := errors.Join(err, u.out.Flush()); err != nil || !u.incomplete {
			return err
		}
		return cli.ErrNo
	})
	return cmd
}

// parseSince parses a time in the past of which a day is known.
func parseSince(s string, now time.Time) (time.Time, error) {
	day, err := words.ParseSince(s, now)
	if err == nil && hits.DayOf(day) == 0 { // the day of what has never matched
		err = fmt.Errorf("%q: no gate ran in %d: ask for a later day", s, day.Year())
	}
	if err != nil {
		return day, fmt.Errorf("--since: %w", err)
	}
	return day, nil
}

// unusedRun is one run of unused.
type unusedRun struct {
	*session.Session
	here bool // of this gate alone
	out  *bufio.Writer

	incomplete bool // a gate of the fleet has not answered
}

// unusedSource returns the unused entries of a list, from the gate or from disk.
type unusedSource func(ctx context.Context, list string, since time.Time, here bool, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error)

func (u *unusedRun) run(names []string, since time.Time) error {
	ask, from, err := unusedFrom(u.Session)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := u.printList(ask, from, name, since); err != nil {
			return err
		}
	}
	return nil
}

// unusedFrom returns the source of unused entries: the running gate, or else what the last
// gate stored on disk.
func unusedFrom(s *session.Session) (ask unusedSource, from string, err error) {
	c, gate := s.Config, s.Gate()
	if gate.Client != nil {
		return gate.Client.Unused, "the running gate", nil
	}
	gate.Warn(s.Stderr)
	from = "no gate is running: what the last one has recorded"
	if gate.Err != nil {
		from = "what a gate has recorded on disk"
	}
	set, _, err := s.Read()
	if err != nil {
		return nil, "", err
	}
	key, _ := report.HitsKey(set)
	ask = func(ctx context.Context, name string, since time.Time, _ bool, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error) {
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
		return report.UnusedEntries(ctx, set, report.Unused{List: name, Since: since, Known: kept}, begin, each)
	}
	return ask, from, nil
}

// maxSorted bounds the entries that are sorted by file and line before they are printed.
// If there are more, the rest is printed in the order of the index.
const maxSorted = 1 << 20

// unusedLine is an entry for programs.
type unusedLine struct {
	List string `json:"list"`
	admin.UnusedEntry
}

// printList prints the entries of one list.
func (u *unusedRun) printList(ask unusedSource, from, name string, since time.Time) error {
	var waiting []admin.UnusedEntry
	sorted := true
	flush := func() error {
		slices.SortFunc(waiting, func(a, b admin.UnusedEntry) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		for _, e := range waiting {
			if err := u.printEntry(name, e); err != nil {
				return err
			}
		}
		waiting = nil
		return nil
	}
	var asked *admin.UnusedFleet
	end, err := ask(u, name, since, u.here,
		func(h admin.UnusedHeader) error {
			if asked = h.Fleet; asked == nil && u.shared(name) {
				return fmt.Errorf("list %s: the other gates of the fleet were not asked, since no gate runs here, or one of an older version: --here is about this gate alone", name)
			}
			if h.Known > h.Since { // days as they are written sort as they come
				return fmt.Errorf("list %s: matches since %s are not known, only those since %s: ask with --since %s, or again later", name, h.Since, h.Known, h.Known)
			}
			return u.printFleet(name, h.Since, asked)
		},
		func(e admin.UnusedEntry) error {
			if !sorted {
				return u.printEntry(name, e)
			}
			if waiting = append(waiting, e); len(waiting) < maxSorted {
				return nil
			}
			sorted = false
			return flush()
		})
	if errors.Is(err, admin.ErrNotAsked) {
		err = fmt.Errorf("%w: --here is about this gate alone", err)
	}
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	if !u.JSON {
		// The entries are standard output; this is for people.
		if err := u.out.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(u.Stderr, "list %s: %s of %s have not matched since %s (%s)\n", name,
			text.Number(end.Unused), text.Number(end.Entries), hits.DayOf(since), from)
		if asked != nil {
			term.PrintWrapped(term.Escape(u.Stderr), "", fleetAnswered(asked))
		}
	}
	return nil
}

// shared reports whether the matches of a list on other gates count.
func (u *unusedRun) shared(list string) bool {
	i := setup.ListIndex(u.Config, list)
	return !u.here && u.Config.Fleet.On() && u.Config.Lists[i].Fleet
}

// printFleet notes, and prints for programs, which gates were asked.
func (u *unusedRun) printFleet(list, since string, asked *admin.UnusedFleet) error {
	if asked == nil {
		return nil
	}
	u.incomplete = u.incomplete || !asked.Complete()
	if !u.JSON {
		return nil
	}
	return json.NewEncoder(u.out).Encode(struct {
		List       string             `json:"list"`
		Since      string             `json:"since"`
		Fleet      *admin.UnusedFleet `json:"fleet"`
		Incomplete bool               `json:"incomplete"`
	}{list, since, asked, !asked.Complete()})
}

// fleetAnswered says which gates have answered, and what that means.
func fleetAnswered(f *admin.UnusedFleet) string {
	text := "Asked the fleet: " + f.Answered() + " answered"
	if lacks := f.Lacks(); lacks != "" {
		text += ". INCOMPLETE: " + lacks + ": entries may have matched there"
	}
	return text + "."
}

func (u *unusedRun) printEntry(list string, e admin.UnusedEntry) error {
	if u.JSON {
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
