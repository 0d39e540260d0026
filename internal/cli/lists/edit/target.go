package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listfiles"
)

// addFile adds the flag that names one of a list's files.
func addFile(f *session.Flags, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.File, "file", "", "the `FILE`, if the list has several (default: the first)")
}

// addTarget adds the flags that say to which list entries are added.
func addTarget(f *session.Flags, cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.List, "list", "l", "", "the `NAME` of the list")
	cmd.Flags().BoolVar(&f.ToAllowed, "allow", false, "add to the default allow list, not the block list")
	cmd.MarkFlagsMutuallyExclusive("list", "allow")
	addFile(f, cmd)
	f.AddFor(cmd, forEntries)
}

// listToAddTo returns the list of the flags. Ran says that the command has ended: see
// [session.Session.AsOwner].
func listToAddTo(s *session.Session) (l *listfiles.List, ran bool, err error) {
	kind := "block"
	if s.ToAllowed {
		kind = "allow"
	}
	if l, err = session.WritableList(s.Config, s.List, kind, s.Recipient != ""); err == nil {
		ran, err = s.AsOwner(l.Managed)
	}
	return l, ran, err
}

// checkSides returns an error if a list has entries for recipients and --for is missing, or
// the other way round.
func checkSides(s *session.Session, l *listfiles.List) error {
	if err := session.CheckFor(s.Recipient); err != nil {
		return err
	}
	switch {
	case l.PerRecipient && s.Recipient == "":
		return fmt.Errorf("each entry of list %s counts for some recipients: say for whom, as in --for ann@example.net or --for @example.net", l.Name)
	case !l.PerRecipient && s.Recipient != "":
		return fmt.Errorf("list %s counts for every recipient, so --for has no effect: remove it, or %s", l.Name, session.HowToSide(s.Config))
	}
	return nil
}

// sided returns entries as the list has them, after the recipient of --for.
func sided(s *session.Session, entries []string) []string {
	if s.Recipient == "" {
		return entries
	}
	both := slices.Clone(entries)
	for i, e := range entries {
		both[i] = withRecipient(s, e)
	}
	return both
}

// withRecipient returns an entry after the recipient of --for.
func withRecipient(s *session.Session, entry string) string {
	if s.Recipient == "" {
		return entry
	}
	return strings.TrimSpace(s.Recipient) + "  " + strings.TrimSpace(entry)
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

// forEntries is the description of --for.
const forEntries = "the `RECIPIENT` for whom the entries count, in a list\nwith per_recipient = true: ann@example.net,\n@example.net …"
