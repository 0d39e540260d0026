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
		f, err := s.gate.Fleet(ctx)
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
	default:
		term.PrintWrapped(w, "", fmt.Sprintf("%s is NOT CONNECTED, and goes on with the lists that it has: %s", f.Name, f.Trouble))
	}
	if f.ReadOnly {
		fmt.Fprintln(w, "its credentials only permit reading: edits are refused here")
	}
	newest := newestOf(f)
	printMembers(w, f, newest, now, width, all)
	printLists(w, f, newest, width)
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

func printMembers(w io.Writer, f *admin.Fleet, newest map[string]fleet.ListStatus, now time.Time, width int, all bool) {
	fmt.Fprintln(w)
	if f.MembersError != "" {
		term.PrintWrapped(w, "members: ", "not known: "+f.MembersError)
		return
	}
	t := term.Table{Columns: []term.Column{
		{Title: "member"}, {Title: "version", Left: true, Spare: true}, {Title: "seen"}, {Title: "up", Spare: true}, {Title: "clock", Spare: true}, {Title: "lists", Left: true},
	}}
	members, bad := foremost(f.Members, newest)
	shown := len(members)
	if !all && shown > maxShown {
		shown = min(bad, maxShown)
	}
	for _, p := range members[:shown] {
		t.Add(p.Name, p.Version, term.Age(now.Sub(p.Seen))+" ago", uptime(&p, now), clock(p.Clock), describeLists(&p, newest))
	}
	if shown > 0 {
		t.Write(w, width)
	}
	if shown < len(members) {
		fmt.Fprintln(w, unshown(len(members), shown, bad)+": --all shows all")
	}
}

// foremost returns the members with whom something is wrong, and then the others.
func foremost(members []fleet.Presence, newest map[string]fleet.ListStatus) (all []fleet.Presence, bad int) {
	isBad := func(p fleet.Presence) bool { return !p.Well() || len(behindOf(&p, newest)) > 0 }
	for _, p := range members {
		if isBad(p) {
			all = append(all, p)
		}
	}
	bad = len(all)
	for _, p := range members {
		if !isBad(p) {
			all = append(all, p)
		}
	}
	return all, bad
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

// uptime says since when the process of a member runs, if it has told so.
func uptime(p *fleet.Presence, now time.Time) string {
	if started := admin.ParseFleetReport(p.Report).Started; !started.IsZero() {
		return term.Age(now.Sub(started))
	}
	return "-"
}

// clock says how wrong a clock is, if it is wrong.
func clock(d time.Duration) string {
	if d.Abs() < 2*time.Second {
		return "right"
	}
	return fmt.Sprintf("%+d s", int(d.Round(time.Second).Seconds()))
}

// behindOf says which lists of a member are behind.
func behindOf(p *fleet.Presence, newest map[string]fleet.ListStatus) (behind []string) {
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
	return behind
}

// describeLists says in few words which lists of a member are behind.
func describeLists(p *fleet.Presence, newest map[string]fleet.ListStatus) string {
	behind := behindOf(p, newest)
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
