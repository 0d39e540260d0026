package versions

import (
	"fmt"
	"io"
	"sync/atomic"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/store"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// listSides holds what is needed to compare two states of a list.
type listSides struct {
	*session.Session
	list     *listfiles.List
	versions []store.VersionInfo // the newest first
	key      *segment.Key
	guarded  listfiles.Protection
}

// side is one of the two states. Its read function builds its segment.
type side struct {
	name string
	read func() (*segment.Segment, error)

	// Entries that are left out, see [store.Omissions].
	protected, disallowed atomic.Int64
}

// newListSides finds the stored versions of a list, and its files if they are wanted.
func newListSides(run *session.Session, name string, files bool, key *segment.Key) (*listSides, error) {
	c := run.Config
	l, err := listfiles.Find(c, name)
	if err != nil {
		return nil, fmt.Errorf("%w; to compare files name two: OLD and NEW", err)
	}
	s := &listSides{Session: run, key: key, guarded: listfiles.NewProtection(c)}
	if s.list, err = listfiles.New(l); err != nil && files {
		return nil, err
	}
	s.list.Options.Now = 0 // entries whose time is over do not count
	if s.versions, err = session.KeptVersions(c, name); err != nil {
		return nil, err
	}
	if len(s.versions) == 0 {
		return nil, fmt.Errorf("list %s: %w", name, session.NoVersionKept(c))
	}
	return s, nil
}

// choose returns the two sides to be compared. The defaults are the version that went
// live last, and the files on disk.
func (s *listSides) choose(from, to string) (old, side *side, err error) {
	v := s.versions[0]
	if from != "" {
		if v, err = session.FindVersion(s.list.Name, s.versions, from); err != nil {
			return old, side, err
		}
	}
	old = s.version(v)
	if to == "" {
		if sum, err := setup.Opener(s.list.List).ContentSum(s.list.Paths); err == nil && sum == v.Sum && from == "" {
			fmt.Fprintf(s.Stderr, "spamgate: list %s: what is on disk is what went live last; to compare with an earlier version give --from VERSION,\nas spamgate lists rollback %[1]s --list-versions shows them\n", s.list.Name)
		}
		return old, s.disk(), nil
	}
	if v, err = session.FindVersion(s.list.Name, s.versions, to); err != nil {
		return old, side, err
	}
	return old, s.version(v), nil
}

// version returns a stored version of the list as a side.
func (s *listSides) version(v store.VersionInfo) *side {
	found := &side{name: "version " + v.ID}
	found.read = func() (*segment.Segment, error) {
		b := listfiles.NewBuilder(s, s.key)
		b.Leave = s.leave(found)
		defer b.Builder.Abort()
		err := store.ExtractVersion(s.Config.State.Dir, s.list.Name, v.ID, func(path string, content io.Reader) error {
			if _, err := b.Add(content, s.list.Options); err != nil {
				return fmt.Errorf("%s: %w", term.ShortPath(path), err)
			}
			_, err := io.Copy(io.Discard, content) // to its end, where it shows whether it is whole
			return err
		})
		if err != nil {
			return nil, err
		}
		return b.Finish()
	}
	return found
}

// leave returns a function that reports whether the list leaves an entry out, and counts
// those for the side. They may come and go without being a difference.
func (s *listSides) leave(from *side) func(listfile.Entry) bool {
	return func(e listfile.Entry) bool {
		why := s.guarded.LeftOut(s.list, e)
		switch {
		case !why.Omitted():
			return false
		case why.Protected() != "":
			from.protected.Add(1)
		default:
			from.disallowed.Add(1)
		}
		return true
	}
}

// disk returns the list's files as a side.
func (s *listSides) disk() *side {
	version := &side{name: "what is on disk"}
	version.read = func() (*segment.Segment, error) {
		scan := listfiles.NewScan(s, []*listfiles.List{s.list}, s.Stderr)
		defer scan.Bar.Finish()
		return listfiles.Segment(scan, s.list, s.key, s.leave(version))
	}
	return version
}
