package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"spamgate/internal/atomicfile"
)

// Missing returns the lists that the gate never had a version of, and of which it has no entry
// of its own.
func Missing(o Options) (missing []List, err error) {
	tree := atomicfile.In(o.StateDir)
	for _, l := range o.Lists {
		had, err := hasEntries(tree, l)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.Name, err)
		}
		if !had && l.Kind != Accounts {
			missing = append(missing, l)
		}
	}
	return missing, nil
}

// hasEntries reports whether a list was ever taken from the fleet, or has entries.
func hasEntries(tree atomicfile.Tree, l List) (bool, error) {
	if a, err := readRecord(tree, l); err != nil || a != nil {
		return a != nil, err
	}
	name, _ := tree.Name(l.Path)
	file, err := tree.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	none, err := l.isEmpty(file)
	return !none, err
}

// AwaitFirst waits until the gate has a version of a list, or knows that nobody has one.
func (m *Member) AwaitFirst(ctx context.Context, name string) error {
	l, err := m.list(name)
	if err != nil {
		return err
	}
	return m.wait(ctx, func() bool {
		r := l.remote
		return l.applied != nil || l.Kind == Fetched && r != nil && l.fresh && r.version == nil && r.err == nil
	})
}
