package look

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/report"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [LIST]",
		Short: "Show the state of the lists: entries, age, errors, hits",
		Long: `Show the state of each list, or all details of one. The command asks the running
gate. If none runs, it reads the lists from disk as a start would.

LEFT OUT counts the lines that are not looked up: invalid and unsupported ones,
and entries that may not count. With LIST the command says which.
AGE is the time since the newest file of the list was changed, or since its URL
was last read. HITS TODAY counts matches since midnight UTC. FILL and FPR are
those of a filter with this list only.

--detail measures the false positive rate of the filter of the lists on disk. It
asks with made-up names, and with names that resemble the lists' own.
These are entries with one digit, a number, one letter or the order of two
characters changed; the change with the highest rate counts. Both rates have an
interval of 95% confidence. A false positive refuses no mail; it costs a lookup
in the list's index. The classic hashes and "weighted" are worse with names that
resemble the entries: their expected rate is never below what the probes leave.
The estimated number of keys follows from the bits that are set; if entries
resemble each other, classic hashes set fewer.

Files with recipient domains and valid recipients have the names of their keys,
recipient_domains and valid_recipients. That of a recipient policy has its name.

Exit codes: 0 success; 2 an error, or no gate runs and a list cannot be read.`,
		Example: `  spamgate lists status
  spamgate lists status blocked
  spamgate lists status --detail
  spamgate lists status --json | jq '.lists[] | select(.error)'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("name one list, or none to see all")
			}
			return nil
		},
	}
	var f session.Flags
	f.AddJSON(cmd)
	detail := cmd.Flags().Bool("detail", false, "measure the filter, too: memory, keys, false positive rate")
	f.Runs(cmd, func(run *session.Session, args []string) error {
		c := run.Config
		if len(args) > 0 && !session.IsRecipientFile(c, args[0]) {
			if _, err := listfiles.FindAny(c, args[0]); err != nil {
				return err
			}
		}
		s, unread, err := run.Status()
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if err := session.Only(&s, c, args[0]); err != nil {
				return err
			}
		}
		full := fullStatus{Status: s}
		if *detail {
			if full.Measured, err = measure(run); err != nil {
				return err
			}
		}
		err = run.Print(full, func(w io.Writer) { printStatus(w, c, full, len(args) > 0) })
		return errors.Join(err, notPermitted(s.Lists, unread))
	})
	return cmd
}

// notPermitted returns an error if this user may not read one of the shown lists.
func notPermitted(shown []admin.List, read []blocklist.ListStats) error {
	for _, l := range read {
		if errors.Is(l.Err, fs.ErrPermission) && local.HasList(shown, l.Name) {
			return listfiles.WithAuthority(fmt.Errorf("list %s: %w", l.Name, l.Err), listfiles.WhoServes)
		}
	}
	return nil
}

// printStatus prints a status in at most 80 columns, longer names and paths apart.
func printStatus(w io.Writer, c *config.Config, s fullStatus, details bool) {
	printFrom(w, c, s.Status)
	if !details {
		printFilterStatus(w, s.Status)
	}
	if s.Measured != nil {
		s.Measured.print(w)
	}
	if !details {
		printListTable(w, s.Lists)
	} else if len(s.Lists) > 0 {
		printListDetails(w, &s.Lists[0])
	}
	printRecipients(w, s.Status, !details)
}

// printFrom prints the source of the status: a running gate, or the disk.
func printFrom(w io.Writer, c *config.Config, s admin.Status) {
	if s.From == admin.FromDisk {
		if s.Unasked != "" {
			term.PrintWrapped(w, "", s.Unasked+"; read from disk")
		} else {
			fmt.Fprint(w, "no gate is running: read from disk\n")
		}
		return
	}
	fmt.Fprintf(w, "running gate: process %d, generation %d", s.PID, s.Generation)
	if s.Started != nil {
		fmt.Fprintf(w, ", for %s", term.Age(s.Time.Sub(*s.Started)))
	}
	fmt.Fprintln(w)
	if file, err := filepath.Abs(c.File); err == nil && s.Config != "" && s.Config != file {
		fmt.Fprintf(w, "  its configuration is %s\n", s.Config)
	}
}

func printFilterStatus(w io.Writer, s admin.Status) {
	f := s.Filter
	if f.Kind != "" {
		fmt.Fprintf(w, "filter: %s, %s; fill ratio %s, expected FPR %s\n",
			kindAndFamily(f.Kind, f.Family), term.ByteSize(int64(f.Bytes)), term.SmallText(f.FillRatio), term.FPR(float64(f.FPR)))
	}
	if f.Warning != "" {
		term.PrintWrapped(w, "  warning: ", f.Warning)
	}
	if s.Lookups != nil && *s.Lookups > 0 {
		fmt.Fprintf(w, "looked up: %s, maybes of the filter: %s", text.Number(*s.Lookups), text.Number(*s.Maybes))
		if s.FalseMaybes != nil {
			fmt.Fprintf(w, ", %s of them false", text.Number(*s.FalseMaybes))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

func kindAndFamily(kind, family string) string {
	if family == "" || family == kind {
		return kind
	}
	return kind + ", " + family
}

const listColumns = "%-14s %-12s %10s %8s %6s %10s %7s %6s\n"

// printListTable prints a line for each list, its source below, and what is wrong with it.
func printListTable(w io.Writer, lists []admin.List) {
	fmt.Fprintf(w, listColumns, "LIST", "FORMAT", "ENTRIES", "LEFT OUT", "AGE", "HITS TODAY", "FILL", "FPR")
	for i := range lists {
		l := &lists[i]
		name := l.Name
		if len(name) > 14 {
			fmt.Fprintln(w, name)
			name = ""
		}
		if l.DNS != nil {
			printDNSList(w, name, l.DNS)
			printTrouble(w, l)
			continue
		}
		today := "-"
		if l.HitsToday != nil {
			today = text.Number(*l.HitsToday)
		}
		fmt.Fprintf(w, listColumns, name, formatText(l), text.Number(l.Entries), text.Number(l.LeftOut()),
			listAge(l, time.Now()), today, term.SmallText(l.FillRatio), term.SmallFPR(float64(l.FPR)))
		fmt.Fprintf(w, "  %s%s%s\n", sourceText(l), keptBy(l), conditions(l))
		printTrouble(w, l)
	}
}

// printTrouble prints what is wrong with a list, and whether it is pinned.
func printTrouble(w io.Writer, l *admin.List) {
	if p := l.Pinned; p != nil {
		message := fmt.Sprintf("%s, by %s", text.Count(p.Entries, "entry", "entries"), p.Who)
		if p.Why != "" {
			message += ": " + p.Why
		}
		term.PrintWrapped(w, "  PINNED since "+p.Since.Local().Format("2006-01-02 15:04")+": ", message)
	}
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
		term.PrintWrapped(w, "  "+what+": ", l.Error)
	}
	if l.ListsNobody != "" {
		term.PrintWrapped(w, "  PROBLEM: ", l.ListsNobody)
	}
	if l.DNS != nil {
		printDNSTrouble(w, l.DNS)
	}
	if l.Fetch != nil && l.Fetch.Error != "" {
		term.PrintWrapped(w, fmt.Sprintf("  NOT FETCHED, failures in a row: %d: ", l.Fetch.Failures), l.Fetch.Error)
	}
}

// formatText returns the format of a list's first file.
func formatText(l *admin.List) string {
	if l.Packed != "" {
		return l.Format + "+" + l.Packed
	}
	return l.Format
}

// sourceText returns where a list comes from.
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

// keptBy says that the gate keeps a list, and which entries go there.
func keptBy(l *admin.List) string {
	text := ""
	if l.Managed {
		text = ", managed"
	}
	if l.Default {
		text += ", default"
	}
	return text
}

// listAge returns the time since the list in use was last changed or confirmed.
func listAge(l *admin.List, now time.Time) string {
	updated := report.LastUpdate(l)
	if updated == nil {
		return "-"
	}
	return term.Age(now.Sub(*updated))
}
