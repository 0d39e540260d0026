package lists

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// isRecipientFile reports whether a name is that of a file with recipients.
func isRecipientFile(c *config.Config, name string) bool {
	return slices.ContainsFunc(setup.RecipientFiles(c), func(s recipients.Spec) bool { return s.Name() == name })
}

// only leaves the list, or the file with recipients, of a name in a status.
func only(s *admin.Status, c *config.Config, name string) (err error) {
	if !isRecipientFile(c, name) {
		s.Recipients = nil
		s.Lists, err = onlyList(*s, name)
		return err
	}
	s.Lists = []admin.List{}
	s.Recipients = slices.DeleteFunc(s.Recipients, func(r admin.RecipientFile) bool { return r.Name != name })
	if len(s.Recipients) == 0 {
		return errors.New(local.NoListYet(name, s.PID))
	}
	return nil
}

const recipientColumns = "%-20s %11s %7s %6s\n"

// printRecipients prints a line for each file with recipients, and what is wrong with it.
func printRecipients(w io.Writer, s admin.Status, apart bool) {
	if len(s.Recipients) == 0 {
		return
	}
	if apart {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, recipientColumns, "RECIPIENTS", "ENTRIES", "INVALID", "AGE")
	for _, r := range s.Recipients {
		age := "-"
		if r.Modified != nil {
			age = term.Age(s.Time.Sub(*r.Modified))
		}
		fmt.Fprintf(w, recipientColumns, r.Name, text.Number(r.Entries), text.Number(r.Invalid), age)
		fmt.Fprintf(w, "  %s\n", term.ShortPath(r.Path))
		if p := r.Problem; p != nil {
			term.PrintWrapped(w, "  invalid: ", fmt.Sprintf("line %d: %q %s", p.Line, p.Text, p.What))
		}
		if r.Error == "" {
			continue
		}
		what := "HELD"
		if r.ErrorSince != nil {
			what += " since " + r.ErrorSince.Local().Format(time.DateTime)
		}
		term.PrintWrapped(w, "  "+what+", its last good version serves: ", r.Error)
	}
}

// recipients accepts a file with recipients.
func (a *acceptance) recipients(ctx context.Context) (acceptResult, error) {
	gate := local.DialGate(a.config)
	defer gate.Close()
	result := acceptResult{List: a.list, DryRun: a.dryRun}
	if gate.Client == nil {
		result, err := a.recipientsByHand(result)
		if err == nil && !a.dryRun {
			result.Gate = gate.Rescan(ctx, a.list)
		}
		return result, err
	}
	s, err := gate.Client.Status(ctx)
	if err == nil {
		err = only(&s, a.config, a.list)
	}
	if err != nil {
		return result, err
	}
	r := s.Recipients[0]
	result.Held, result.Before = r.Error, r.Entries
	if a.dryRun {
		return a.countRecipients(result)
	}
	done, err := gate.Client.Accept(ctx, a.list, "", a.why)
	if err != nil {
		return result, err
	}
	result.Accepted, result.Entries, result.Before = true, done.Entries, done.Before
	result.Gate = &local.Answer{Running: true, Generation: done.Generation}
	return result, nil
}

// recipientsByHand accepts a file for the next start.
func (a *acceptance) recipientsByHand(result acceptResult) (acceptResult, error) {
	if a.dryRun {
		return a.countRecipients(result)
	}
	f, err := a.heldRecipients()
	if err != nil {
		return result, err
	}
	log := &listedit.Log{Dir: a.config.State.Dir}
	if err := log.Check(); err != nil {
		return result, fmt.Errorf("nothing is accepted: %w", err)
	}
	s := f.Status()
	result.Held, result.Before = s.Err.Error(), s.Entries
	if err := f.Accept(); err != nil {
		return result, err
	}
	result.Accepted, result.Entries = true, f.Status().Entries
	record := listedit.NewRecord("accept", a.list, s.Path)
	record.What, record.Why = fmt.Sprintf("%d entries; %d before: %s", result.Entries, result.Before, result.Held), a.why
	return result, log.Append(record)
}

// heldRecipients reads the file, whose version on disk must be one that can be accepted.
func (a *acceptance) heldRecipients() (*recipients.File, error) {
	i := slices.IndexFunc(setup.RecipientFiles(a.config), func(s recipients.Spec) bool { return s.Name() == a.list })
	spec := setup.RecipientFiles(a.config)[i]
	f, err := recipients.Read(spec, a.config.State.Dir)
	if err != nil {
		return nil, setup.RecipientFault(a.config, spec, err)
	}
	switch s := f.Status(); {
	case s.Err == nil:
		return nil, fmt.Errorf("%s: %w: what is on disk serves, with %s", a.list, admin.ErrNothingHeld, text.Count(s.Entries, "entry", "entries"))
	case !s.Acceptable:
		return nil, fmt.Errorf("%s cannot be accepted as it is: %w", a.list, s.Err)
	}
	return f, nil
}

// countRecipients adds what would be accepted.
func (a *acceptance) countRecipients(result acceptResult) (acceptResult, error) {
	f, err := a.heldRecipients()
	if err != nil {
		return result, err
	}
	s := f.Status()
	result.Held, result.Before, result.Entries = s.Err.Error(), s.Entries, s.OnDisk
	return result, nil
}
