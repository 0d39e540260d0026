package versions

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/term"
	"spamgate/internal/words"
)

func newListsChangesCommand() *cobra.Command {
	var o session.Flags
	var q changesQuery
	var since string
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "Show who changed the lists, when and why",
		Long: `Show the changes that "spamgate lists" commands made, from the audit log in the
state directory, the oldest first. Rotated logs beside it (audit.log.1,
audit.log-20261121.gz …) count, too.

--entry finds the changes that name an entry, in any spelling, or its exception;
'ann@example.net spam.example' is an entry that counts for a recipient.
import, accept, pin and rollback name no entries, except in managed lists.

"spamgate lists undo" takes a change of a managed list back, by its ID, or all
that a command changed, by the ID of the command.

Lines that are not records are reported on standard error and skipped.

Exit codes: 0 success; 2 a log cannot be read, or an error.`,
		Example: `  spamgate lists changes --since 7d
  spamgate lists changes --entry spam.example --json
  spamgate lists changes --list blocked --who alice`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&q.List, "list", "l", "", "only changes of the list `NAME`")
	cmd.Flags().StringVar(&q.Entry, "entry", "", "only changes that name this `ENTRY`")
	cmd.Flags().StringVar(&q.By, "who", "", "only changes by `USER`, with or before sudo, or an\naccount of the console")
	cmd.Flags().StringVar(&since, "since", "", "only changes since `TIME`: 7d, 12h, a day or a time")
	o.AddJSON(cmd)
	o.Runs(cmd, func(s *session.Session, _ []string) error {
		var err error
		if since != "" {
			if q.Since, err = words.ParseSince(since, time.Now()); err != nil {
				return fmt.Errorf("--since: %w", err)
			}
		}
		if q.Entry != "" {
			if q.entries, err = managed.MentionsOf(q.Entry); err != nil {
				return err
			}
		}
		records, err := readChanges(s, q)
		if records == nil && err != nil {
			return listfiles.WithAuthority(err, listfiles.WhoServes)
		}
		return errors.Join(s.Print(records, func(w io.Writer) { printChanges(w, records) }), err)
	})
	return cmd
}

// changesQuery says which records to show.
type changesQuery struct {
	managed.ChangesQuery
	entries managed.Mentions // of Entry
}

// errMore says that changes may be missing.
var errMore = errors.New("not all logs could be read, so there may be more")

// readChanges reads the audit log and what was rotated away of it.
func readChanges(s *session.Session, q changesQuery) ([]listedit.Record, error) {
	records := []listedit.Record{}
	var denied error
	log := listedit.Log{Dir: s.Config.State.Dir}
	complete, err := log.Newest(s, listedit.Search{Since: q.Since, Found: func(r listedit.Record) bool {
		if q.Wants(&r) && q.entries.In(&r) {
			records = append(records, r)
		}
		return true
	}, Skipped: func(name string, what error) {
		if errors.Is(what, fs.ErrPermission) {
			denied = what
		}
		fmt.Fprintf(term.Escape(s.Stderr), "spamgate: %s: skipped: %v\n", name, what)
	}})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return changesOfGate(s, q, err)
	case err != nil || denied != nil:
		return nil, cmp.Or(err, denied)
	case !complete:
		err = errMore
	}
	slices.SortStableFunc(records, func(a, b listedit.Record) int { return b.Time.Compare(a.Time) })
	slices.Reverse(records)
	return records, err
}

// changesOfGate asks the running gate for what the audit log has, if this process may not read
// it.
func changesOfGate(s *session.Session, q changesQuery, unreadable error) ([]listedit.Record, error) {
	client := s.Gate().Client
	if client == nil {
		return nil, unreadable
	}
	records := []listedit.Record{}
	q.Limit = 1000
	for {
		page, err := admin.Call(s, client, admin.OpChanges, admin.ChangesRequest{ChangesQuery: q.ChangesQuery})
		if err != nil {
			return nil, err
		}
		for _, c := range page.Changes {
			records = append(records, recordOf(c))
		}
		if q.Before = page.Next; q.Before != "" {
			continue
		}
		slices.Reverse(records)
		if page.Incomplete {
			return records, errMore
		}
		return records, nil
	}
}

// recordOf returns the record of a change without the number of the user, which the gate does
// not tell.
func recordOf(c managed.Change) listedit.Record {
	r := listedit.Record{
		Time: c.Time, UID: -1, Role: c.Role, Through: c.Through, Command: c.Command, List: c.List, File: c.File, What: c.What, Why: c.Why,
		Edit: listedit.Edit{ID: c.ID, Entry: c.Entry, For: c.For, Before: c.Before, After: c.After, Undoes: c.Undoes, CommandID: c.CommandID},
	}
	if c.Through == managed.ThroughConsole || c.Through == managed.ThroughAPI {
		r.By = c.By
	} else {
		r.User = c.By
	}
	return r
}

// printChanges prints records in at most 80 columns, where words permit that.
func printChanges(w io.Writer, records []listedit.Record) {
	for i := range records {
		r := &records[i]
		what := strings.TrimSpace(r.Command + " " + r.List)
		if r.Through != "" && r.Through != managed.ThroughCommand {
			what += " (" + r.Through + ")"
		}
		fmt.Fprintf(w, "%s  %s  %s\n", session.Clock(r.Time), whoDid(r), what)
		if r.File != "" {
			term.PrintWrapped(w, "  ", term.ShortPath(r.File))
		}
		term.PrintWrapped(w, "  ", r.What)
		if r.Why != "" {
			term.PrintWrapped(w, "  why: ", r.Why)
		}
		switch {
		case r.ID == "" && r.CommandID != "":
			fmt.Fprintf(w, "  command %s\n", r.CommandID)
		case r.ID != "" && r.CommandID != "" && r.ID != r.CommandID:
			fmt.Fprintf(w, "  change %s of command %s\n", r.ID, r.CommandID)
		case r.ID != "":
			fmt.Fprintf(w, "  change %s\n", r.ID)
		}
	}
	if len(records) == 0 {
		fmt.Fprintln(w, "no such change is recorded")
	}
}

// whoDid returns who made a change: "alice (root)" with sudo.
func whoDid(r *listedit.Record) string {
	if r.By == "" && r.SudoUser != "" && r.User != "" && r.SudoUser != r.User {
		return r.SudoUser + " (" + r.User + ")"
	}
	return r.Person()
}
