package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/fleet"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newJoin() *cobra.Command {
	var r admin.FleetJoinRequest
	cmd := &cobra.Command{
		Use:   "join [LIST...]",
		Short: "Decide which version of a list counts, or come back",
		Long: `A gate with [fleet] joins by itself. If a list has entries here that the
fleet's version lacks, the gate leaves it as it is, and "spamgate fleet status"
says that it differs. This command decides:

  --take    the fleet's version replaces it. "spamgate lists rollback" can bring
            back what was live here
  --merge   the entries that only this gate has are added on all gates: also one
            that others have removed meanwhile, which comes back

Without LIST it decides about all lists that differ; without --take and --merge
it names them. It also ends "spamgate fleet leave", even if no server can be
reached now: then the gate connects later.

Exit codes: 0 done; 1 a list still differs; 2 an error.`,
		Example: `  spamgate fleet join
  spamgate fleet join blocked --merge --reason "mx3 is new"
  spamgate fleet join --take`,
	}
	cmd.Flags().BoolVar(&r.Take, "take", false, "replace the list by the fleet's version")
	cmd.Flags().BoolVar(&r.Merge, "merge", false, "add the entries that only this gate has")
	cmd.Flags().StringVarP(&r.Why, "reason", "r", "", "`TEXT` for the audit log: why")
	cmd.MarkFlagsMutuallyExclusive("take", "merge")
	return runs(cmd, func(ctx context.Context, s *session, args []string) error {
		r.Lists = args
		j, err := admin.Call(ctx, s.gate, admin.OpFleetJoin, r)
		if err != nil {
			return err
		}
		failed := false
		err = s.print(j, func(w io.Writer) { printJoined(w, &j, r.Take || r.Merge) })
		for _, l := range j.Lists {
			failed = failed || l.Error != ""
		}
		if failed {
			err = errors.Join(err, cli.ErrNo)
		}
		return err
	})
}

// printJoined prints what was done. Decided says that the admin has named a version.
func printJoined(w io.Writer, j *admin.FleetJoined, decided bool) {
	differ := false
	for _, l := range j.Lists {
		switch {
		case l.Error != "":
			differ = true
			term.PrintWrapped(w, "list "+l.List+": ", "NOT DONE: "+l.Error)
		case l.Done == admin.FleetMerged:
			fmt.Fprintf(w, "list %s: %s: %s\n", l.List, l.Done, mergedWords(l))
		default:
			fmt.Fprintf(w, "list %s: %s\n", l.List, l.Done)
		}
	}
	if differ && !decided {
		term.PrintWrapped(w, "", "For each of these, --take replaces the list by the fleet's version, and --merge adds the entries that only this gate has, on all gates.")
	}
	fmt.Fprintf(w, "%s is in the fleet: %s\n", j.Fleet.Name, j.Fleet.State)
}

// mergedWords says what a merge has added.
func mergedWords(l admin.FleetJoinedList) string {
	switch {
	case l.Added == 0:
		return "nothing to add, the fleet's version counts"
	case l.List == fleet.AccountsList:
		return text.Count(l.Added, "account", "accounts") + " added to the fleet's"
	}
	return text.Count(l.Added, "entry", "entries") + " added to the fleet's"
}

func newLeave() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Take this gate out of the fleet",
		Long: `Take the running gate out of the fleet until "spamgate fleet join", also over
restarts. It keeps the lists that it has, and edits of them count on this gate
only. spamgate-fleetd goes on here, since other gates may need its server.
After "spamgate fleet join" a list with such edits differs, and that command
decides. To leave for good, remove [fleet] and the lines fleet = true from the
configuration.

Exit codes: 0 it has left; 2 an error.`,
		Example: `  spamgate fleet leave`,
		Args:    cobra.NoArgs,
	}
	return runs(cmd, func(ctx context.Context, s *session, _ []string) error {
		f, err := admin.Call(ctx, s.gate, admin.OpFleetLeave, admin.None{})
		if err != nil {
			return err
		}
		return s.print(f, func(w io.Writer) {
			fmt.Fprintf(w, "%s has left the fleet, and goes on with the lists that it has\n", f.Name)
		})
	})
}
