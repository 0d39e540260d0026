package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"spamgate/internal/atomicfile"
)

// maxAccepted is how many accepted contents of a list are remembered, the newest.
const maxAccepted = 100

// acceptedFile is what the file "accepted" of a list's directory holds.
type acceptedFile struct {
	Accepted []acceptedContent `json:"accepted"`
}

// acceptedContent is a content that was accepted, and how it was read then: in another
// format the same bytes are another list, which nobody has looked at.
type acceptedContent struct {
	SHA256  string `json:"sha256"`  // its ContentSum
	Options string `json:"options"` // see readOptions.sum
}

// contentSum returns the [Opener.ContentSum] of files with these sums.
func contentSum(files [][sha256.Size]byte) string {
	h := sha256.New()
	for i := range files {
		h.Write(files[i][:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// AcceptContent accepts a content of a list that would be held because it looks wrong, by
// its [Opener.ContentSum]. It does not accept content that is held for [ErrInvalidLines],
// [ErrEmptied], [ErrProtected] or [ErrTooBig]. The acceptance is valid while the list's
// settings stay the same. It may be given before the content exists. A Store with that
// state directory uses it when it next looks at the list.
func AcceptContent(c Config, list, sum string) error {
	l, err := c.list(list)
	if err != nil {
		return err
	}
	o := c.readOptions(l)
	return acceptContent(c.StateDir, list, acceptedContent{sum, o.sum(l)})
}

// IsAccepted reports whether AcceptContent has accepted a content of a list, as the list's
// settings are now.
func IsAccepted(c Config, list, sum string) (bool, error) {
	l, err := c.list(list)
	if err != nil {
		return false, err
	}
	o := c.readOptions(l)
	contents, err := acceptedContents(atomicfile.In(c.StateDir), ListName(list))
	return slices.Contains(contents, acceptedContent{sum, o.sum(l)}), err
}

// AcceptContent calls the function AcceptContent with the Store's configuration.
func (s *Store) AcceptContent(list, sum string) error {
	s.mu.Lock()
	c := s.config
	s.mu.Unlock()
	return AcceptContent(c, list, sum)
}

func acceptContent(stateDir, list string, content acceptedContent) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("accepting a content of list %q: %w", list, err)
		}
	}()
	if b, err := hex.DecodeString(content.SHA256); err != nil || len(b) != sha256.Size {
		return fmt.Errorf("%q is not a SHA-256 in hexadecimal", content.SHA256)
	}
	tree, dir := atomicfile.In(stateDir), ListName(list)
	if err := tree.MakeDirs(dir); err != nil {
		return err
	}
	// Two of us at once must not lose what the other adds.
	unlock, err := tree.Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := acceptedContents(tree, dir)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(other acceptedContent) bool { return other == content })
	all = append(all, content)
	text, err := json.Marshal(acceptedFile{all[max(0, len(all)-maxAccepted):]})
	if err != nil {
		return err
	}
	return tree.WriteFile(path.Join(dir, acceptedName), dir, newPattern, append(text, '\n'))
}

// Why Accept has nothing to accept. Use errors.Is.
var (
	ErrUnknownList = errors.New("no such list")
	ErrNotHeld     = errors.New("nothing is held")
)

// Accept lets in what is held of a list, and looks at the files. If the list still has an
// error afterwards, it returns that: another content may be there by now.
func (s *Store) Accept(ctx context.Context, list string) error {
	err := s.acceptHeld(list)
	if err != nil {
		return fmt.Errorf("list %q: %w", list, err)
	}
	err = s.Rescan(ctx)
	for _, l := range s.Set().Stats().Lists {
		if l.Name == list && l.Err == nil {
			return nil // what is wrong with other lists was so before
		}
	}
	return err
}

func (s *Store) acceptHeld(list string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sources, func(src *source) bool { return src.list.Name == list })
	if i < 0 {
		return ErrUnknownList
	}
	src := s.sources[i]
	sum := sumOf(src.live.stamps)
	switch err := src.live.err; {
	case err == nil:
		return ErrNotHeld
	case errors.Is(err, ErrKilled):
		src.live.stamps = nil // or nothing looks changed
		s.state.log.Info("a list that the gate was killed over is read once more", "list", list)
		return retryBuild(s.state.tree, list)
	case !acceptable(err) || sum == "":
		return fmt.Errorf("%w that could be accepted: %w", ErrNotHeld, err)
	}
	src.accepted = append(src.accepted, sum)
	s.state.log.Info("held content accepted", "list", list, "sha256", sum)
	if !s.state.writable() {
		return nil
	}
	return acceptContent(s.state.dir, list, acceptedContent{sum, src.options.sum(src.list)})
}

// acceptedContents reads what was accepted of a list. A damaged file counts as none: all it
// ever did was to let contents in.
func acceptedContents(tree atomicfile.Tree, dir string) ([]acceptedContent, error) {
	text, err := tree.ReadFile(path.Join(dir, acceptedName), maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file acceptedFile
	if json.Unmarshal(text, &file) != nil {
		return nil, nil
	}
	return file.Accepted, nil
}
