package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
)

// AddFor adds --for, which names the recipient's side of entries.
func (f *Flags) AddFor(cmd *cobra.Command, usage string) {
	cmd.Flags().Var((*forFlag)(&f.Recipient), "for", usage)
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

// CheckFor returns an error if --for is not a recipient.
func CheckFor(recipient string) error {
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

// HowToSide names the lists with entries for recipients, or says how to make one.
func HowToSide(c *config.Config) string {
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
