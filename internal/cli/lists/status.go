package lists

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
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

func newListsStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [LIST]",
		Short: "Say how the lists are doing: entries, age, errors, hits",
		Long: `Say how each list is doing, and with a name all there is to know of it. A
running gate is asked; where none runs, the lists are read from disk as a start
would read them.

AGE is since the newest file of the list was changed, or since its URL was last
read. HITS TODAY counts matches since midnight UTC. FILL and FPR are those of
the filter if it held this list alone.

Exit codes: 0 said; 2 an error, or no gate is asked and a list may not be read.`,
		Example: `  spamgate lists status
  spamgate lists status blocked
  spamgate lists status --json | jq '.lists[] | select(.error)'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("lists status: name one list, or none to see all")
			}
			return nil
		},
	}
	var f listsFlags
	f.config = cli.ConfigFlag(cmd)
	f.addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(*f.config)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if _, err := listfiles.Find(c, args[0]); err != nil {
				return err
			}
		}
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		s, unread, err := askStatus(ctx, c, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if s.Lists, err = onlyList(s, args[0]); err != nil {
				return err
			}
		}
		out := term.Escape(cmd.OutOrStdout())
		if f.json {
			err = cli.PrintJSON(out, s)
		} else {
			err = printStatus(out, c, s, len(args) > 0)
		}
		return errors.Join(err, notPermitted(s.Lists, unread))
	}
	return cmd
}

// notPermitted is about the shown lists which this user may not read, so that
// nobody knows how they are doing; nil if there are none.
func notPermitted(shown []admin.List, read []blocklist.ListStats) error {
	for _, l := range read {
		if errors.Is(l.Err, fs.ErrPermission) && cli.HasList(shown, l.Name) {
			return listfiles.WithAuthority(fmt.Errorf("lists status: list %s: %w", l.Name, l.Err), listfiles.WhoServes)
		}
	}
	return nil
}

// askStatus asks the running gate, or else reads the lists, and returns what it
// has read.
func askStatus(ctx context.Context, c *config.Config, stderr io.Writer) (s admin.Status, read []blocklist.ListStats, err error) {
	gate := cli.DialGate(c)
	defer gate.Close()
	if gate.Client != nil {
		s, err = gate.Client.Status(ctx)
		return s, nil, err
	}
	set, lists, err := buildReadOnly(ctx, c, stderr)
	if ctx.Err() != nil {
		return s, nil, context.Cause(ctx)
	}
	if set == nil && len(lists) == 0 {
		return s, nil, err
	}
	stats := blocklist.SetStats{Lists: lists} // of lists that cannot be used: what is wrong stands there
	if set != nil {
		stats = set.Stats()
	}
	s = report.Status(c, stats)
	s.From = admin.FromDisk
	report.AddFetched(c, &s)
	if gate.Err != nil {
		s.Unasked = gate.Err.Error()
	}
	if set != nil {
		addHits(c, set, &s)
	}
	return s, stats.Lists, nil
}

// buildReadOnly reads the lists as a start would, and writes nothing.
func buildReadOnly(ctx context.Context, c *config.Config, stderr io.Writer) (*blocklist.Set, []blocklist.ListStats, error) {
	b, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		return nil, nil, err
	}
	b.ReadOnly = true
	return cli.BuildSet(ctx, b, stderr)
}

// addHits adds what a gate has kept of today's hits.
func addHits(c *config.Config, set *blocklist.Set, s *admin.Status) {
	key, ok := report.HitsKey(set)
	if !ok {
		return
	}
	for i := range s.Lists {
		kept, err := hits.Read(c.State.Dir, report.HitsName(s.Lists[i].Name), key)
		if err == nil {
			n := kept.On(hits.DayOf(time.Now()))
			s.Lists[i].HitsToday = &n
		}
	}
}

// onlyList is the list of a name. A gate that has not been reloaded may lack one
// that the configuration has.
func onlyList(s admin.Status, name string) ([]admin.List, error) {
	for _, l := range s.Lists {
		if l.Name == name {
			return []admin.List{l}, nil
		}
	}
	return nil, errors.New(cli.NoListYet(name, s.PID))
}

// printStatus prints a status for people, up to 80 columns wide but for names and
// paths that are longer.
func printStatus(w io.Writer, c *config.Config, s admin.Status, details bool) error {
	var b bytes.Buffer
	printFrom(&b, c, s)
	if details {
		printListDetails(&b, &s.Lists[0])
	} else {
		printFilterStatus(&b, s)
		printListTable(&b, s.Lists)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// printFrom says who says so.
func printFrom(b *bytes.Buffer, c *config.Config, s admin.Status) {
	if s.From == admin.FromDisk {
		if s.Unasked != "" {
			term.PrintWrapped(b, "", s.Unasked+"; read from disk")
		} else {
			b.WriteString("no gate is running: read from disk\n")
		}
		return
	}
	fmt.Fprintf(b, "running gate: process %d, generation %d", s.PID, s.Generation)
	if s.Started != nil {
		fmt.Fprintf(b, ", for %s", term.Age(s.Time.Sub(*s.Started)))
	}
	b.WriteByte('\n')
	if file, err := filepath.Abs(c.File); err == nil && s.Config != "" && s.Config != file {
		fmt.Fprintf(b, "  its configuration is %s\n", s.Config)
	}
}

func printFilterStatus(b *bytes.Buffer, s admin.Status) {
	f := s.Filter
	if f.Kind != "" {
		fmt.Fprintf(b, "filter: %s, %s; fill ratio %s, expected FPR %s\n",
			kindAndFamily(f.Kind, f.Family), term.ByteSize(int64(f.Bytes)), term.SmallText(f.FillRatio), term.FPR(f.FPR))
	}
	if f.Warning != "" {
		term.PrintWrapped(b, "  warning: ", f.Warning)
	}
	if s.Lookups != nil && *s.Lookups > 0 {
		fmt.Fprintf(b, "looked up: %s, maybes of the filter: %s", text.Number(*s.Lookups), text.Number(*s.Maybes))
		if s.FalseMaybes != nil {
			fmt.Fprintf(b, ", %s of them false", text.Number(*s.FalseMaybes))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

func kindAndFamily(kind, family string) string {
	if family == "" || family == kind {
		return kind
	}
	return kind + ", " + family
}

const listColumns = "%-14s %-12s %11s %7s %6s %10s %7s %6s\n"

// printListTable has a line for each list, one below it with its source, and more
// where something is wrong.
func printListTable(b *bytes.Buffer, lists []admin.List) {
	fmt.Fprintf(b, listColumns, "LIST", "FORMAT", "ENTRIES", "INVALID", "AGE", "HITS TODAY", "FILL", "FPR")
	for i := range lists {
		l := &lists[i]
		name := l.Name
		if len(name) > 14 {
			fmt.Fprintln(b, name)
			name = ""
		}
		today := "-"
		if l.HitsToday != nil {
			today = text.Number(*l.HitsToday)
		}
		fmt.Fprintf(b, listColumns, name, formatText(l), text.Number(l.Entries), text.Number(l.Invalid),
			listAge(l, time.Now()), today, term.SmallText(l.FillRatio), term.SmallFPR(l.FPR))
		fmt.Fprintf(b, "  %s\n", sourceText(l))
		printTrouble(b, l)
	}
}

// printTrouble says what is wrong with a list.
func printTrouble(b *bytes.Buffer, l *admin.List) {
	if l.Error != "" {
		what := "ERROR"
		switch {
		case !l.LastGood:
			what = "NO VERSION"
		case l.Held:
			what = "HELD"
		}
		if l.ErrorSince != nil {
			what += " since " + l.ErrorSince.Local().Format("2006-01-02 15:04")
		}
		if l.LastGood {
			what += ", its last good version serves"
		}
		term.PrintWrapped(b, "  "+what+": ", l.Error)
	}
	if l.Fetch != nil && l.Fetch.Error != "" {
		term.PrintWrapped(b, fmt.Sprintf("  NOT FETCHED, failures in a row: %d: ", l.Fetch.Failures), l.Fetch.Error)
	}
}

// formatText is the format of a list's first file.
func formatText(l *admin.List) string {
	if l.Packed != "" {
		return l.Format + "+" + l.Packed
	}
	return l.Format
}

// sourceText is where a list comes from.
func sourceText(l *admin.List) string {
	if l.URL != "" {
		return l.URL
	}
	if len(l.Files) == 1 {
		return term.ShortPath(l.Files[0].Path)
	}
	text := term.ShortPath(l.Path)
	if n := len(l.Files); n > 1 {
		text += fmt.Sprintf(" (%d files)", n)
	}
	return text
}

// listAge is how long ago what serves was brought up to date.
func listAge(l *admin.List, now time.Time) string {
	if l.Fetch != nil && l.Fetch.LastGood != nil {
		return term.Age(now.Sub(*l.Fetch.LastGood))
	}
	newest := report.NewestFile(l)
	if newest == nil {
		return "-"
	}
	return term.Age(now.Sub(*newest))
}
