package look

import (
	"fmt"
	"io"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

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
