package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/fleet"
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
seconds. A member that has not for a minute is not shown any more. The sequence
counts the versions of a list; "behind" is by how many a member is behind.

Exit codes: 0 all is well; 1 something is wrong; 2 an error.`,
		Example: `  spamgate fleet status
  spamgate fleet status --json | jq .problems`,
		Args: cobra.NoArgs,
	}
	return runs(cmd, func(ctx context.Context, s *session, _ []string) error {
		f, err := s.gate.Fleet(ctx)
		if err != nil {
			return err
		}
		if err := s.print(f, func(w io.Writer) { printStatus(w, &f, time.Now(), s.width()) }); err != nil {
			return err
		}
		if f.State != admin.FleetConnected || len(f.Problems) > 0 {
			return cli.ErrNo
		}
		return nil
	})
}

func printStatus(w io.Writer, f *admin.Fleet, now time.Time, width int) {
	switch f.State {
	case admin.FleetOff:
		fmt.Fprintln(w, admin.ErrNoFleet)
		return
	case admin.FleetLeft:
		term.PrintWrapped(w, "", f.Name+" has left the fleet, and goes on with the lists that it has; spamgate fleet join brings it back")
		return
	case admin.FleetConnected:
		term.PrintWrapped(w, "", fmt.Sprintf("%s is connected to %s", f.Name, f.Server))
	default:
		term.PrintWrapped(w, "", fmt.Sprintf("%s is NOT CONNECTED, and goes on with the lists that it has: %s", f.Name, f.Trouble))
	}
	if f.ReadOnly {
		fmt.Fprintln(w, "its credentials only permit reading: edits are refused here")
	}
	newest := newestOf(f)
	printMembers(w, f, newest, now, width)
	printLists(w, f, newest, width)
	if len(f.Problems) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, problem := range f.Problems {
		term.PrintWrapped(w, "PROBLEM: ", problem)
	}
}

// newestOf returns the newest sequence of each list that somebody has.
func newestOf(f *admin.Fleet) map[string]fleet.ListStatus {
	newest := map[string]fleet.ListStatus{}
	see := func(lists []fleet.ListStatus) {
		for _, l := range lists {
			if known, ok := newest[l.Name]; !ok || l.Sequence > known.Sequence {
				newest[l.Name] = l
			}
		}
	}
	see(f.Lists)
	for _, p := range f.Members {
		see(p.Lists)
	}
	return newest
}

func printMembers(w io.Writer, f *admin.Fleet, newest map[string]fleet.ListStatus, now time.Time, width int) {
	fmt.Fprintln(w)
	if f.MembersError != "" {
		term.PrintWrapped(w, "members: ", "not known: "+f.MembersError)
		return
	}
	t := term.Table{Columns: []term.Column{
		{Title: "member"}, {Title: "version", Left: true, Spare: true}, {Title: "seen"}, {Title: "clock", Spare: true}, {Title: "lists", Left: true},
	}}
	for _, p := range f.Members {
		t.Add(p.Name, p.Version, term.Age(now.Sub(p.Seen))+" ago", clock(p.Clock), describeLists(&p, newest))
	}
	t.Write(w, width)
}

// clock says how wrong a clock is, if it is wrong.
func clock(d time.Duration) string {
	if d.Abs() < 2*time.Second {
		return "right"
	}
	return fmt.Sprintf("%+d s", int(d.Round(time.Second).Seconds()))
}

// describeLists says which lists of a member are behind.
func describeLists(p *fleet.Presence, newest map[string]fleet.ListStatus) string {
	var behind []string
	for _, l := range p.Lists {
		switch by := newest[l.Name].Sequence - l.Sequence; {
		case l.Error != "":
			behind = append(behind, l.Name+" differs")
		case l.Sequence == 0:
			behind = append(behind, l.Name+" has no version yet")
		case by > 0:
			behind = append(behind, fmt.Sprintf("%s behind by %d", l.Name, by))
		}
	}
	switch {
	case len(behind) > 2:
		return text.Count(len(behind), "list", "lists") + " behind"
	case len(behind) > 0:
		return strings.Join(behind, ", ")
	}
	return text.Count(len(p.Lists), "list", "lists") + ", none behind"
}

func printLists(w io.Writer, f *admin.Fleet, newest map[string]fleet.ListStatus, width int) {
	if len(f.Lists) == 0 {
		fmt.Fprintln(w, "\nno list is shared: fleet = true in a [[list]] does that")
		return
	}
	fmt.Fprintln(w)
	t := term.Table{Columns: []term.Column{
		{Title: "list"}, {Title: "sequence"}, {Title: "digest", Left: true}, {Title: "here", Left: true}, {Title: "fetched by", Left: true, Spare: true},
	}}
	for _, l := range f.Lists {
		top := newest[l.Name]
		here := "equal"
		switch {
		case l.Error != "":
			here = "differs"
		case l.Sequence == 0:
			here = "no version yet"
		case l.Sequence < top.Sequence:
			here = fmt.Sprintf("behind by %d", top.Sequence-l.Sequence)
		}
		t.Add(l.Name, text.Number(int(top.Sequence)), shortSum(top.SHA256), here, fetcherOf(f, l.Name))
	}
	t.Write(w, width)
}

// fetcherOf returns who fetches a list.
func fetcherOf(f *admin.Fleet, list string) string {
	var names []string
	for _, p := range f.Members {
		for _, l := range p.Lists {
			if l.Name == list && l.Fetches {
				names = append(names, p.Name)
			}
		}
	}
	return cmp.Or(strings.Join(names, ", "), "-")
}

func shortSum(sum string) string { return cmp.Or(sum[:min(12, len(sum))], "-") }
