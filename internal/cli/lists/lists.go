// Package lists holds the commands of those who keep the lists.
package lists

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/atomicfile"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// NewCommand returns the command group.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lists",
		Short: "Maintain the lists: add, remove, find, import, compare",
		Long: `Maintain the configured lists. A change is atomic, keeps the file's comments,
order, owner and mode, is recorded in the audit log in the state directory, and
is live in a running gate at once. Two changes of one list wait for each other.

Every command that changes something has --dry-run, or changes only what a flag
such as --remove says; every command that prints has --json. Lists from a URL,
and lists in another format than the gate's own, are never changed: put
exceptions to them into a list of your own.`,
		Example: `  spamgate lists add spam.example --reason "unsolicited mail"
  spamgate lists add shop.example --for ann@example.net --reason "her wish"
  spamgate lists find spam.example
  spamgate lists remove spam.example --reason "they have stopped"
  spamgate lists import bad.txt --format hosts --list blocked --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{
		newListsAddCommand(),
		newListsRemoveCommand(),
		newListsMoveCommand(),
		newListsEditCommand(),
		newListsFindCommand(),
		newListsLintCommand(),
		newListsDiffCommand(),
		newListsImportCommand(),
		newListsExportCommand(),
		newListsPublishCommand(),
		newListsTestCommand(),
		newListsCompareCommand(),
		newListsStatusCommand(),
		newListsUnusedCommand(),
		newListsAcceptCommand(),
		newListsRollbackCommand(),
		newListsUndoCommand(),
		newListsPinCommand(),
		newListsUnpinCommand(),
		newListsFetchCommand(),
		newListsChangesCommand(),
	} {
		checkFlags(verb)
		cli.NameErrors(verb)
		complete(verb)
		cmd.AddCommand(verb)
	}
	return cmd
}

// writableNames returns the names of the lists that commands can change.
func writableNames(c *config.Config) []string {
	var names []string
	for _, l := range c.Lists {
		if at := (&listfiles.List{List: l}); at.Writable() {
			names = append(names, l.Name)
		}
	}
	return names
}

// howToWrite names the lists that can be changed, or says how to add one.
func howToWrite(c *config.Config) string {
	if names := writableNames(c); len(names) > 0 {
		return "lists that can be changed: " + strings.Join(names, ", ") + " (--list NAME)"
	}
	return "add a list of your own to " + c.File + ": a line [[list]], and below it " +
		`name = "own" and path = "own.txt" (an empty file)`
}

// writableList returns the list to be changed: the named one, or else the default one of a type,
// or the only one of it that can be changed and has entries for recipients or for all.
func writableList(c *config.Config, name, kind string, perRecipient bool) (*listfiles.List, error) {
	if name == "" {
		name = defaultList(c, kind, perRecipient)
	}
	if name == "" {
		var able []config.List
		for _, l := range c.Lists {
			if at := (&listfiles.List{List: l}); at.Writable() && l.Type == kind && l.PerRecipient == perRecipient {
				able = append(able, l)
			}
		}
		switch {
		case len(able) == 0 && perRecipient:
			return nil, fmt.Errorf("which list? To change entries for recipients, %s", howToSide(c))
		case len(able) != 1:
			return nil, fmt.Errorf("which list? %s", howToWrite(c))
		}
		name = able[0].Name
	}
	l, err := listfiles.Find(c, name)
	if err != nil {
		return nil, err
	}
	at, err := listfiles.New(l)
	if err == nil && l.Managed {
		at.Paths = []string{l.Copy} // the editor makes it if the list has not begun yet
	}
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNoMatch)
	switch {
	case l.URL != "":
		return nil, fmt.Errorf("list %s comes from %s, whose next update would undo a change; %s", l.Name, setup.FetchSource(l).ShownURL(), howToWrite(c))
	case !at.ReadsPlain() && !(missing && listfile.Format(l.Format) == listfile.Auto):
		return nil, fmt.Errorf("list %s has the format %q, which is read and never written; %s", l.Name, l.Format, howToWrite(c))
	case missing:
		return nil, fmt.Errorf("%w; %s", err, howToBringBack(c, l, errors.Is(err, store.ErrNoMatch)))
	case err != nil:
		return nil, err
	}
	return at, nil
}

// howToBringBack says what to do about a list whose file is missing. It does not suggest an
// empty file if a version is stored. The path may be a glob, which cannot name a new file.
func howToBringBack(c *config.Config, l config.List, glob bool) string {
	versions, err := keptVersions(c, l.Name)
	switch {
	case len(versions) > 0:
		return fmt.Sprintf("spamgate lists rollback %s puts the last version back", l.Name)
	case err != nil:
		return fmt.Sprintf("whether a version of it is kept is not known: %v", err)
	case glob:
		return "no version of it is kept; for an empty list make an empty file of such a name"
	}
	return "no version of it is kept; for an empty list: touch " + term.ShellWord(term.ShortPath(l.Path))
}

// fileToEdit returns the file to be changed: the named one, or else the list's first.
func fileToEdit(l *listfiles.List, name string) (string, error) {
	if name == "" {
		return l.Paths[0], nil
	}
	for _, f := range l.Paths {
		if atomicfile.SameFile(f, name) {
			return f, nil
		}
	}
	shown := make([]string, len(l.Paths))
	for i, f := range l.Paths {
		shown[i] = term.ShortPath(f)
	}
	return "", fmt.Errorf("%s is no file of list %s; it has %s", name, l.Name, strings.Join(shown, ", "))
}
