package lists

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

// addFor adds --for, which names the recipient's side of entries.
func (f *listsFlags) addFor(cmd *cobra.Command, usage string) {
	cmd.Flags().Var((*forFlag)(&f.recipient), "for", usage)
}

// forFlag is the value of --for: one recipient.
type forFlag string

func (f *forFlag) String() string { return string(*f) }

func (f *forFlag) Type() string { return "string" }

func (f *forFlag) Set(recipient string) error {
	switch {
	case strings.TrimSpace(recipient) == "":
		return errors.New("name the recipient, such as ann@example.net or @example.net")
	case *f != "":
		return fmt.Errorf("%s is named already: run the command once for each recipient", *f)
	case strings.Contains(recipient, ",") && !strings.Contains(recipient, `"`):
		return errors.New("name one recipient, and run the command once for each")
	}
	*f = forFlag(recipient)
	return nil
}

// Uses of --for.
const (
	forEntries = "the `RECIPIENT` for whom the entries count, in a list\nwith per_recipient = true: ann@example.net,\n@example.net …"
	forFind    = "search what counts for the recipient `ADDRESS`; with\n@example.net and the like, the lines that say so"
)

// checkFor returns an error if --for is not a recipient.
func checkFor(recipient string) error {
	if recipient == "" {
		return nil
	}
	e, err := listfile.ParseEntry(recipient, listfile.Options{})
	switch {
	case err != nil && !strings.ContainsAny(recipient, "@. \t"):
		return fmt.Errorf("--for %q: no domain; write %s@example.net for an address, or @example.net for all of a domain", recipient, recipient)
	case err != nil:
		return fmt.Errorf("--for %w", err)
	case e.Exception:
		return fmt.Errorf(`--for %q: an exception mark ("!") before the recipient; write it before the entry`, recipient)
	case e.Kind == sender.KindNull:
		return errors.New("--for <>: the null sender is not a recipient; name the recipient, or a domain as @example.net")
	}
	return nil
}

// checkSides returns an error if a list has entries for recipients and --for is missing, or
// the other way round.
func (f *listsFlags) checkSides(c *config.Config, l *listfiles.List) error {
	if err := checkFor(f.recipient); err != nil {
		return err
	}
	switch {
	case l.PerRecipient && f.recipient == "":
		return fmt.Errorf("each entry of list %s counts for some recipients: say for whom, as in --for ann@example.net or --for @example.net", l.Name)
	case !l.PerRecipient && f.recipient != "":
		return fmt.Errorf("list %s counts for every recipient, so --for has no effect: remove it, or %s", l.Name, howToSide(c))
	}
	return nil
}

// howToSide names the lists with entries for recipients, or says how to make one.
func howToSide(c *config.Config) string {
	var names []string
	for _, l := range c.Lists {
		if l.PerRecipient {
			names = append(names, l.Name)
		}
	}
	if len(names) > 0 {
		return "name a list by recipient: " + strings.Join(names, ", ") + " (--list NAME)"
	}
	return "add a list by recipient to " + c.File + ": a line [[list]], and below it " +
		`name = "personal", path = "personal.txt" (an existing file) and per_recipient = true`
}

// sided returns entries as the list has them, after the recipient of --for.
func (f *listsFlags) sided(entries []string) []string {
	if f.recipient == "" {
		return entries
	}
	both := slices.Clone(entries)
	for i, e := range entries {
		both[i] = f.side(e)
	}
	return both
}

// side returns an entry after the recipient of --for.
func (f *listsFlags) side(entry string) string {
	if f.recipient == "" {
		return entry
	}
	return strings.TrimSpace(f.recipient) + "  " + strings.TrimSpace(entry)
}

// recipientKey returns the recipient's side of an entry of a list in normal form.
func recipientKey(recipient string, o listfile.Options) string {
	o.PerRecipient = true
	e, err := listfile.ParseEntry(recipient+" @a.example", o)
	if err != nil {
		return recipient // checkFor has accepted it
	}
	return e.For
}

// asArguments returns an entry as commands take it.
func asArguments(e listfile.Entry) string {
	side := ""
	if e.For != "" {
		side = " --for " + term.ShellWord(e.For)
	}
	e.For = ""
	return term.ShellWord(listfiles.Written(e)) + side
}

// opposite returns the text of an exception to an entry, or of what an exception is for.
func opposite(e listfile.Entry) string {
	e.Exception = !e.Exception
	return listfiles.Written(e)
}

// withoutSides returns an error for a command that cannot work with a list's entries for
// recipients.
func withoutSides(l config.List, instead string) error {
	if !l.PerRecipient {
		return nil
	}
	return fmt.Errorf("each entry of list %s counts for some recipients: %s", l.Name, instead)
}
