// Package health is the command that says whether the running gate works.
package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say whether the running gate works",
		Long: `Ask the running gate, over its admin socket, whether

  mail   can pass now: listeners and doors are open, and the next hop accepted
         MAIL in the last 10 seconds, or accepts it now. A line "doors" has the
         doors; without a listener it takes the place of the line "mail"
  lists  are fresh: no update is held, no list lacks a usable version or has
         lines and lists nobody, and lists from a URL were confirmed in the last
         24 hours (or three times their refresh, if that is longer)
  state  is usable: the gate can write to its state directory, which has room

A pinned list is fresh. With --mail only mail counts: for health checks that
restart a container, which a held list must not.

Exit codes: 0 all of it; 1 something is wrong, no gate is running, or the gate
does not answer in time; 2 an error: the configuration cannot be read, or this
user may not ask the gate.`,
		Example: `  spamgate health
  spamgate health --json | jq .mail.next_hops
  spamgate health --mail --config /etc/spamgate/config.toml`,
		Args: cobra.NoArgs,
	}
	file := cli.ConfigFlag(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print a JSON object")
	onlyMail := cmd.Flags().Bool("mail", false, "the exit code tells only whether mail can pass")
	timeout := cli.DurationFlag(cmd, "timeout", enough, "how long to wait for the gate's answer")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *timeout <= 0 {
			return fmt.Errorf("--timeout %v: use a time above 0, such as 10s", *timeout)
		}
		c, err := config.Load(*file)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		h, err := ask(ctx, c, *timeout)
		if err != nil {
			return err
		}
		if *asJSON {
			err = cli.PrintJSON(cmd.OutOrStdout(), h)
		} else {
			print(term.Escape(cmd.OutOrStdout()), c, h)
		}
		if good := h.Healthy || *onlyMail && h.Mail != nil && h.Mail.OK; !good {
			err = errors.Join(err, cli.ErrNo)
		}
		return err
	}
	cli.NameErrors(cmd)
	return cmd
}

// enough is a time within which a gate that works answers, whatever its next hops do.
const enough = 10 * time.Second

// ask asks the running gate. An error says that its health is not known.
func ask(ctx context.Context, c *config.Config, timeout time.Duration) (admin.Health, error) {
	if c.Admin.Socket == "" {
		return admin.Health{}, errors.New(`cannot ask a gate, since [admin] socket is ""; remove that line, and restart the gate`)
	}
	gate := local.DialGate(c)
	defer gate.Close()
	switch {
	case gate.Err != nil:
		return admin.Health{}, gate.Err
	case gate.Client == nil:
		return notRunning(c, "no gate is running: nothing answers at "+c.Admin.Socket+
			"; start it (systemctl start spamgate, or spamgate serve), or name its configuration with --config. "+
			"A gate that was just started opens the socket once it listens: its log says what it waits for"), nil
	}
	h, err := admin.Call(ctx, gate.Client, admin.OpHealth, admin.None{})
	var refused *admin.Error
	switch {
	case err == nil:
		return h, nil
	case errors.Is(err, context.DeadlineExceeded):
		why := fmt.Sprintf("the gate at %s did not answer within %v; ", c.Admin.Socket, timeout)
		if timeout < enough {
			return notRunning(c, why+"it may wait for a next hop, for which --timeout "+enough.String()+" is enough"), nil
		}
		return notRunning(c, why+"if it stays so, restart it"), nil
	case errors.Is(err, admin.ErrNotRunning):
		return notRunning(c, err.Error()), nil
	case errors.As(err, &refused) && refused.Code == "no_path":
		return h, errors.New("the running gate is an older version, which cannot be asked: spamgate handover replaces it")
	}
	return h, err
}

// notRunning returns the health if no gate answers.
func notRunning(c *config.Config, why string) admin.Health {
	return admin.Health{Time: time.Now().UTC(), Config: c.File, Error: why}
}

// print prints the health for people.
func print(w io.Writer, c *config.Config, h admin.Health) {
	if !h.Running {
		term.PrintWrapped(w, "NOT WORKING: ", h.Error)
		return
	}
	fmt.Fprintf(w, "running gate: process %d, version %s", h.PID, h.Version)
	if h.Started != nil {
		fmt.Fprintf(w, ", for %s", term.Age(h.Time.Sub(*h.Started)))
	}
	fmt.Fprintln(w)
	if file, err := filepath.Abs(c.File); err == nil && h.Config != "" && h.Config != file {
		fmt.Fprintf(w, "  its configuration is %s\n", h.Config)
	}
	printMail(w, h)
	printLists(w, h)
	printState(w, h)
	printHistory(w, h)
	printFleet(w, h)
}

// Labels of the lines, and of what is wrong.
const (
	labelMail  = "mail   "
	labelDoors = "doors  "
	labelLists = "lists  "
	labelState = "state  "
	labelKept  = "history "
	labelFleet = "fleet  "
	wrong      = "PROBLEM: "
	suspect    = "WARNING: "
)

func printMail(w io.Writer, h admin.Health) {
	for _, problem := range h.Mail.Problems {
		term.PrintWrapped(w, labelMail+wrong, problem)
	}
	for _, warning := range h.Mail.Warnings {
		term.PrintWrapped(w, labelMail+suspect, warning)
	}
	if !h.Mail.OK {
		return
	}
	if len(h.Mail.Doors) > 0 {
		var open []string
		for _, d := range h.Mail.Doors {
			open = append(open, describeDoor(d))
		}
		term.PrintWrapped(w, labelDoors, "are open: "+strings.Join(open, ", "))
	}
	if len(h.Mail.Listeners) == 0 {
		return
	}
	text := "can pass: listening on " + strings.Join(h.Mail.Listeners, ", ")
	for _, hop := range h.Mail.NextHops {
		switch {
		case hop.Unknown:
			text += "; " + hop.Address + " answers"
		case !hop.Up:
			text += "; " + hop.Address + " is DOWN (" + hop.Error + ")"
		case hop.Passed != nil:
			text += fmt.Sprintf("; %s accepted MAIL %s ago", hop.Address, term.Age(max(0, h.Time.Sub(*hop.Passed))))
		default:
			text += "; " + hop.Address + " works"
		}
	}
	term.PrintWrapped(w, labelMail, text)
}

// describeDoor returns the address of a door, its kind, and its name.
func describeDoor(d admin.Door) string {
	kind := strings.ReplaceAll(d.Door, "_", " ")
	if kind == "dns" {
		kind = "DNS server"
	}
	if d.Name == d.Address {
		return fmt.Sprintf("%s (%s)", d.Address, kind)
	}
	return fmt.Sprintf("%s (%s %s)", d.Address, kind, d.Name)
}

func printLists(w io.Writer, h admin.Health) {
	entries := 0
	for _, l := range h.Lists.Lists {
		entries += l.Entries
	}
	for _, problem := range h.Lists.Problems {
		term.PrintWrapped(w, labelLists+wrong, problem)
	}
	if h.Lists.OK {
		term.PrintWrapped(w, labelLists, fmt.Sprintf("are fresh: %s, %s",
			text.Count(len(h.Lists.Lists), "list", "lists"), text.Count(entries, "entry", "entries")))
	}
	for _, l := range h.Lists.Lists {
		if l.Pinned {
			term.PrintWrapped(w, labelLists, "note: list "+l.Name+" is pinned, so changes of it do not count")
		}
	}
	if len(h.Lists.Problems) > 0 {
		fmt.Fprintln(w, "       spamgate lists status says more")
	}
}

func printState(w io.Writer, h admin.Health) {
	if !h.State.OK {
		term.PrintWrapped(w, labelState+wrong, h.State.Problem)
		return
	}
	text := "is usable: " + h.State.Dir
	if h.State.Free != nil {
		text += ", " + term.ByteSize(*h.State.Free) + " left"
	}
	term.PrintWrapped(w, labelState, text)
}

// printHistory warns of a history of decisions that stands still, or is too short. Mail passes all
// the same.
func printHistory(w io.Writer, h admin.Health) {
	switch d := h.Decisions; {
	case d == nil:
	case d.Error != "":
		term.PrintWrapped(w, labelKept+"WARNING: ", "decisions are not kept: "+d.Error+"; mail does not wait for that")
	case d.Short && d.Reach != nil:
		term.PrintWrapped(w, labelKept+"WARNING: ", fmt.Sprintf("the history of decisions is full, and reaches back to %s only, not %s: raise [decisions] max_bytes",
			d.Reach.Local().Format(time.DateTime), text.Duration(time.Duration(d.Keep)*time.Second)))
	}
}

// printFleet says whether the gate works in its fleet. Mail passes all the same.
func printFleet(w io.Writer, h admin.Health) {
	f := h.Fleet
	switch {
	case f == nil:
		return
	case f.State == admin.FleetLeft:
		term.PrintWrapped(w, labelFleet, "note: this gate has left the fleet; spamgate fleet join brings it back")
		return
	case len(f.Problems) == 0:
		term.PrintWrapped(w, labelFleet, "is connected, as "+f.Name)
		for _, note := range f.Notes {
			term.PrintWrapped(w, labelFleet, "note: "+note)
		}
		return
	}
	for _, problem := range f.Problems {
		term.PrintWrapped(w, labelFleet+"WARNING: ", problem)
	}
	fmt.Fprintln(w, "       mail does not wait for that; spamgate fleet status says more")
}
