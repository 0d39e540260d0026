package fleet

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newDiff() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "diff [LIST...]",
		Short: "Show which lists differ between members",
		Long: `Ask all members which version of each shared list they serve, and show the
lists that are not the same everywhere. A member may be behind, may hold an
update that looks wrong there, or may have the list pinned. The digest is that
of the version that serves.

Exit codes: 0 all members serve the same; 1 they differ, or one did not answer;
2 an error.`,
		Example: `  spamgate fleet diff
  spamgate fleet diff --all blocked`,
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show lists that are the same everywhere")
	return runs(cmd, func(ctx context.Context, s *session, args []string) error {
		d, err := admin.Call(ctx, s.gate, admin.OpFleetDiff, admin.None{})
		if err != nil {
			return err
		}
		if err := only(&d, args); err != nil {
			return err
		}
		if err := s.print(d, func(w io.Writer) { printDiff(w, &d, all, s.width()) }); err != nil {
			return err
		}
		if differs(&d) {
			return cli.ErrNo
		}
		return nil
	})
}

// only leaves the named lists in a report; none: all.
func only(d *admin.FleetDiff, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(d.Lists, func(l admin.FleetListDiff) bool { return l.List == name }) {
			return fmt.Errorf("list %s is not shared", name)
		}
	}
	d.Lists = slices.DeleteFunc(d.Lists, func(l admin.FleetListDiff) bool { return !slices.Contains(names, l.List) })
	return nil
}

func differs(d *admin.FleetDiff) bool {
	return len(d.Missing) > 0 || len(d.Errors) > 0 || slices.ContainsFunc(d.Lists, func(l admin.FleetListDiff) bool { return !l.Equal })
}

func printDiff(w io.Writer, d *admin.FleetDiff, all bool, width int) {
	for _, l := range d.Lists {
		if l.Equal && !all {
			continue
		}
		message := "members differ"
		if l.Equal {
			message = "equal on all members"
		}
		fmt.Fprintf(w, "list %s: %s\n", l.List, message)
		t := term.Table{Indent: "  ", Columns: []term.Column{
			{Title: "member"}, {Title: "sequence"}, {Title: "serves", Left: true}, {Title: "entries"}, {Title: "note", Left: true},
		}}
		var problems []string
		for _, m := range l.Members {
			note := ""
			if m.Pinned {
				note = "pinned"
			}
			if m.Problem != "" {
				note = strings.TrimPrefix(note+", not live", ", ")
				problems = append(problems, m.Member+": "+m.Problem)
			}
			t.Add(m.Member, text.Number(int(m.Sequence)), shortSum(m.SHA256), text.Number(m.Entries), note)
		}
		t.Write(w, width)
		for _, problem := range problems {
			term.PrintWrapped(w, "  ", problem)
		}
	}
	if len(d.Missing) > 0 {
		term.PrintWrapped(w, "did not answer: ", strings.Join(d.Missing, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Errors)) {
		term.PrintWrapped(w, name+" could not answer: ", d.Errors[name])
	}
	if !differs(d) {
		fmt.Fprintf(w, "all members serve the same: %s\n", text.Count(len(d.Lists), "list", "lists"))
	}
}
