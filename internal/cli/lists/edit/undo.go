package edit

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsUndoCommand() *cobra.Command {
	var o session.Flags
	cmd := &cobra.Command{
		Use:   "undo CHANGE",
		Short: "Undo a change of a managed list, or all that a command changed",
		Long: `Undo a change of a list with managed = true, by its ID or by that of the command
that made it, such as an import: the lines of its entries become those that they
were before. "spamgate lists changes" shows both. An undo is a change, too, and
can be undone.

If somebody has changed the entry since, nothing is changed. Of a command only
such entries stay, and those that the list would not take now, because the
domain is protected since or an exception cancels them; they are named. A change
can be undone for as long as the audit log has it.

Exit codes: 0 undone; 2 an error, and nothing has changed.`,
		Example: `  spamgate lists changes --entry spam.example
  spamgate lists undo kn3evtzg36cihmxn --reason "it was the wrong domain"`,
		Args: session.OneArgument("change; spamgate lists changes shows them"),
	}
	o.AddChange(cmd, session.ForAudit)
	o.Runs(cmd, func(s *session.Session, args []string) error { return listsUndo(s, args[0]) })
	return cmd
}

// undoReport is the output of undo.
type undoReport struct {
	managed.Result
	Gate *local.Answer `json:"gate,omitempty"`
}

func listsUndo(s *session.Session, change string) error {
	if ran, err := s.AsOwner(true); ran || err != nil {
		return err
	}
	r, err := admin.Call(s, s.Editor(), admin.OpUndo, admin.UndoRequest{Change: change, Options: managed.Options{DryRun: s.DryRun, Why: s.Reason}})
	if err != nil {
		return listfiles.WithAuthority(err, listfiles.WhoServes)
	}
	report := &undoReport{Result: r}
	report.Gate = s.Rescan(r.List)
	return s.PrintChange(report, report.print)
}

// mostStays is how many entries are printed that stay.
const mostStays = 20

// printCommand prints what became of the entries of a command.
func (r *undoReport) printCommand(w io.Writer) {
	fmt.Fprintf(w, "list %s: %s %sas before\n", r.List, text.Count(r.Undone, "entry", "entries"), session.Would(r.DryRun))
	if r.Stay > 0 {
		fmt.Fprintf(w, "  %d stay:\n", r.Stay)
		for _, e := range r.Entries[:min(r.Stay, mostStays, len(r.Entries))] {
			term.PrintWrapped(w, "    ", strings.TrimSpace(e.For+" "+e.Entry)+": "+e.Why)
		}
		if more := r.Stay - mostStays; more > 0 {
			fmt.Fprintf(w, "    and %d more\n", more)
		}
	}
}

func (r *undoReport) print(w io.Writer) {
	entries := r.Entries
	if r.Undone > 0 {
		r.printCommand(w)
		entries = nil
	}
	is := "is"
	if r.DryRun {
		is = "would be"
	}
	for _, e := range entries {
		fmt.Fprintf(w, "%s in list %s: its change %s undone\n", e.Text(), r.List, is)
		for _, line := range e.Now {
			term.PrintWrapped(w, "  now: ", line)
		}
		if len(e.Now) == 0 {
			fmt.Fprintln(w, "  the list does not have it now")
		}
	}
	session.PrintOutcome(w, r.DryRun, r.Changed, r.Gate)
}
