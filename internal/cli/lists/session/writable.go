package session

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// WritableNames returns the names of the wanted lists that commands can change.
func WritableNames(c *config.Config, wanted func(config.List) bool) []string {
	var names []string
	for _, l := range c.Lists {
		if list := (&listfiles.List{List: l}); list.Writable() && wanted(l) {
			names = append(names, l.Name)
		}
	}
	return names
}

// HowToWrite names the lists that can be changed, or says how to add one.
func HowToWrite(c *config.Config) string {
	if names := WritableNames(c, func(config.List) bool { return true }); len(names) > 0 {
		return "lists that can be changed: " + strings.Join(names, ", ") + " (--list NAME)"
	}
	return "add a list of your own to " + c.File + ": a line [[list]], and below it " +
		`name = "own" and path = "own.txt" (an empty file)`
}

// WritableList returns the list to be changed: the named one, or else the default one of a type,
// or the only one of it that can be changed and has entries for recipients or for all.
func WritableList(c *config.Config, name, kind string, perRecipient bool) (*listfiles.List, error) {
	if name == "" {
		var err error
		if name, err = defaultList(c, kind, perRecipient); err != nil {
			return nil, err
		}
	}
	l, err := listfiles.Find(c, name)
	if err != nil {
		return nil, err
	}
	list, err := listfiles.New(l)
	if err == nil && l.Managed {
		list.Paths = []string{l.Copy} // the editor makes it if the list has not begun yet
	}
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNoMatch)
	switch {
	case l.URL != "":
		return nil, fmt.Errorf("list %s comes from %s, whose next update would undo a change; %s", l.Name, setup.FetchSource(l).ShownURL(), HowToWrite(c))
	case !list.ReadsPlain() && !(missing && l.Format == listfile.Auto):
		return nil, fmt.Errorf("list %s has the format %q, which is read and never written; %s", l.Name, l.Format, HowToWrite(c))
	case missing:
		return nil, fmt.Errorf("%w; %s", err, howToBringBack(c, l, errors.Is(err, store.ErrNoMatch)))
	case err != nil:
		return nil, err
	}
	return list, nil
}

// howToBringBack says what to do about a list whose file is missing. It does not suggest an
// empty file if a version is stored. The path may be a glob, which cannot name a new file.
func howToBringBack(c *config.Config, l config.List, glob bool) string {
	versions, err := KeptVersions(c, l.Name)
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

// FileToEdit returns the file to be changed: the named one, or else the list's first.
func FileToEdit(l *listfiles.List, name string) (string, error) {
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

// defaultList returns the list of a type to which entries go if none is named.
func defaultList(c *config.Config, kind string, perRecipient bool) (string, error) {
	wanted := func(l config.List) bool { return l.Type == kind && l.PerRecipient == perRecipient }
	if i := slices.IndexFunc(c.Lists, func(l config.List) bool { return l.Default && wanted(l) }); i >= 0 {
		return c.Lists[i].Name, nil
	}
	able := WritableNames(c, wanted)
	switch {
	case len(able) == 0 && perRecipient:
		return "", fmt.Errorf("which list? To change entries for recipients, %s", HowToSide(c))
	case len(able) != 1:
		return "", fmt.Errorf("which list? %s", HowToWrite(c))
	}
	return able[0], nil
}
