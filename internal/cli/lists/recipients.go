package lists

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
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
