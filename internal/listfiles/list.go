// Package listfiles reads the files of the configured lists as the gate does, for commands
// that look into lists and compare them.
package listfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/text"
)

// List is a list of the configuration with the files that it has now.
type List struct {
	config.List
	Options listfile.Options
	Paths   []string
}

// ReadsPlain says that the list's files are in the gate's own format.
func (l *List) ReadsPlain() bool {
	if l.Format != listfile.Auto {
		return l.Format == "" || l.Format == listfile.Plain
	}
	files, err := store.Files([]string{l.Files()})
	if err != nil {
		return false
	}
	for _, path := range files {
		if !looksPlain(setup.Opener(l.List), path) {
			return false
		}
	}
	return true
}

// plainFile reports whether a file of the list is in the gate's own format.
func (l *List) plainFile(path string) bool {
	switch l.Format {
	case "", listfile.Plain:
		return true
	case listfile.Auto:
		return looksPlain(setup.Opener(l.List), path)
	}
	return false
}

// looksPlain reports whether a file has the plain format.
func looksPlain(files store.Opener, path string) bool {
	f, err := files.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start, err := io.ReadAll(io.LimitReader(f, 64<<10))
	format, _ := listfile.Detect(start)
	return err == nil && format == listfile.Plain
}

// Writable says that the list's files may be changed.
func (l *List) Writable() bool { return l.URL == "" && !l.InDNS() && l.ReadsPlain() }

// New finds the files of a list.
func New(l config.List) (*List, error) {
	list := &List{List: l, Options: setup.ListOptions(l)}
	if l.InDNS() {
		return list, noFiles(l)
	}
	if l.Managed {
		return list, list.findManaged()
	}
	files, err := store.Files([]string{l.Files()})
	if err != nil {
		return list, fmt.Errorf("list %s: %w", l.Name, err)
	}
	list.Paths = files
	return list, nil
}

// findManaged finds the file of a managed list. A list that has not begun yet has none. Whoever
// may not read the file may still edit it through the gate.
func (l *List) findManaged() error {
	_, err := setup.Opener(l.List).Stat(l.Copy)
	if errors.Is(err, fs.ErrNotExist) {
		if served, unknown := store.HasServed(l.StateDir(), l.Name); unknown == nil && !served {
			return nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("list %s: %w", l.Name, err)
	}
	l.Paths = []string{l.Copy}
	return nil
}

// noFiles returns the error for a list in DNS.
func noFiles(l config.List) error {
	return fmt.Errorf("list %s is in DNS (%s): the gate asks about single names, and has no files, entries or versions of it; "+
		"spamgate check ADDRESS asks it, and spamgate lists status says how it does", l.Name, text.ShownZone(l.DNSZone))
}

// WithFiles returns the lists of a configuration that have files: all but those in DNS.
func WithFiles(c *config.Config) []config.List {
	return slices.DeleteFunc(slices.Clone(c.Lists), func(l config.List) bool { return l.InDNS() })
}

// Find returns the configured list of a name, which has files.
func Find(c *config.Config, name string) (config.List, error) {
	l, err := FindAny(c, name)
	if err == nil && l.InDNS() {
		return config.List{}, noFiles(l)
	}
	return l, err
}

// FindAny returns the configured list of a name, which may be in DNS.
func FindAny(c *config.Config, name string) (config.List, error) {
	i := setup.ListIndex(c, name)
	if i < 0 {
		return config.List{}, fmt.Errorf("%s has no list %q; it has %s", c.File, name, strings.Join(setup.ListNames(c.Lists), ", "))
	}
	return c.Lists[i], nil
}
