package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/report"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show members, lists, and who is behind",
		Long: `Show the fleet as the running gate sees it: its members, the shared lists with
sequence and digest, which member is behind, and why.

"seen" is when a member last showed that it lives, which each does every 10
seconds, and "up" since when it runs. A member that has not for 40 seconds is
not shown any more. The sequence counts the versions of a list; "behind" is by
how many a member is behind.

Members with whom something is wrong come first. Of more than 20 members the
others are only counted, unless --all is given.

Exit codes: 0 all is well; 1 something is wrong; 2 an error.`,
		Example: `  spamgate fleet status
  spamgate fleet status --json | jq .problems`,
		Args: cobra.NoArgs,
	}
	all := cmd.Flags().Bool("all", false, "show all members and problems, however many")
	return runs(cmd, func(ctx context.Context, s *session, _ []string) error {
		f, err := admin.Call(ctx, s.gate, admin.OpFleet, admin.None{})
		if err != nil {
			return err
		}
		if err := s.print(f, func(w io.Writer) { printStatus(w, &f, time.Now(), s.width(), *all) }); err != nil {
			return err
		}
		if f.State != admin.FleetConnected || len(f.Problems) > 0 {
			return cli.ErrNo
		}
		return nil
	})
}

func printStatus(w io.Writer, f *admin.Fleet, now time.Time, width int, all bool) {
	switch f.State {
	case admin.FleetOff:
		fmt.Fprintln(w, admin.ErrNoFleet)
		return
	case admin.FleetLeft:
		term.PrintWrapped(w, "", f.Name+" has left the fleet, and goes on with the lists that it has; spamgate fleet join brings it back")
		return
	case admin.FleetConnected:
		term.PrintWrapped(w, "", fmt.Sprintf("%s is connected to %s", f.Name, f.Server))
		if n, missing := f.ConnectedServers(); n > 0 && len(missing) == 0 { // else it is a problem
			fmt.Fprintf(w, "servers connected: %d of %d\n", n, n)
		}
	default:
		term.PrintWrapped(w, "", fmt.Sprintf("%s is NOT CONNECTED, and goes on with the lists that it has: %s", f.Name, f.Trouble))
	}
	if f.ReadOnly {
		fmt.Fprintln(w, "its credentials only permit reading: edits are refused here")
	}
	printMembers(w, f, now, width, all)
	printLists(w, f, width)
	problems, more := f.Problems, 0
	if n := len(problems); n > maxShown && !all {
		problems, more = problems[:maxShown], n-maxShown
	}
	if len(problems)+len(f.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, problem := range problems {
		term.PrintWrapped(w, "PROBLEM: ", problem)
	}
	if more > 0 {
		fmt.Fprintf(w, "and %s: --all shows them\n", text.Count(more, "more problem", "more problems"))
	}
	for _, note := range f.Notes {
		term.PrintWrapped(w, "NOTE: ", note)
	}
}

// maxShown is how many members and how many problems are shown by default.
const maxShown = 20

func printMembers(w io.Writer, f *admin.Fleet, now time.Time, width int, all bool) {
	fmt.Fprintln(w)
	if f.MembersError != "" {
		term.PrintWrapped(w, "members: ", "not known: "+f.MembersError)
		return
	}
	t := term.Table{Columns: []term.Column{
		{Title: "member"}, {Title: "version", Left: true, Spare: true}, {Title: "seen"}, {Title: "up", Spare: true}, {Title: "clock", Spare: true}, {Title: "lists", Left: true},
	}}
	members := report.FleetMembers(f, now)
	bad := 0
	for _, m := range members {
		if m.Bad {
			bad++
		}
	}
	shown := len(members)
	if !all && shown > maxShown {
		shown = min(bad, maxShown)
	}
	for _, m := range members[:shown] {
		t.Add(m.Name, m.Version, m.Seen, m.Up, m.Clock, m.Lists)
	}
	if shown > 0 {
		t.Write(w, width)
	}
	if shown < len(members) {
		fmt.Fprintln(w, unshown(len(members), shown, bad)+": --all shows all")
	}
}

// unshown counts the members that are not shown.
func unshown(members, shown, bad int) string {
	if shown < bad {
		return fmt.Sprintf("and %s of %d, with %d of whom something is wrong", text.Count(members-shown, "more member", "more members"), members, bad-shown)
	}
	if bad == 0 {
		return text.Count(members, "member", "members") + ", all well"
	}
	return "and " + text.Count(members-shown, "more member", "more members") + ", all well"
}

func printLists(w io.Writer, f *admin.Fleet, width int) {
	if len(f.Lists) == 0 {
		fmt.Fprintln(w, "\nno list is shared: fleet = true in a [[list]] does that")
		return
	}
	fmt.Fprintln(w)
	t := term.Table{Columns: []term.Column{
		{Title: "list"}, {Title: "sequence"}, {Title: "digest", Left: true}, {Title: "here", Left: true}, {Title: "fetched by", Left: true, Spare: true},
	}}
	for _, l := range report.FleetLists(f) {
		t.Add(l.Name, text.Number(int(l.Sequence)), shortSum(l.SHA256), l.Here, l.FetchedBy)
	}
	t.Write(w, width)
}

func shortSum(sum string) string { return cmp.Or(sum[:min(12, len(sum))], "-") }
