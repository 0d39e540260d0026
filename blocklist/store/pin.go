package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/atomicfile"
)

// ErrPinned is the error of a list that is pinned while its files have another content. It is
// an [ErrHeld]. Use errors.Is.
var ErrPinned error = heldError("pinned")

// Why a list cannot be pinned or unpinned. Use errors.Is.
var (
	ErrNotPinned = errors.New("the list is not pinned")
	ErrNothing   = errors.New("the list has no version that could be pinned")
)

// ReadPin returns the pin of a list; nil if it has none.
func ReadPin(stateDir, list string) (*blocklist.Pin, error) {
	p, err := readPin(atomicfile.In(stateDir), ListName(list))
	if err != nil {
		return nil, fmt.Errorf("reading the pin of list %q: %w", list, err)
	}
	return p, nil
}

func readPin(tree atomicfile.Tree, dir string) (*blocklist.Pin, error) {
	text, err := tree.ReadFile(path.Join(dir, pinName), maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := new(blocklist.Pin)
	_ = json.Unmarshal(text, p) // a damaged file pins the list at no version: see obeyPin
	return p, nil
}

// PinList pins a list at the version with the sum p.Sum: whatever its files hold, that version
// serves until [UnpinList]. The history keeps it until then. A Store with that state directory
// obeys when it next looks at the list.
func PinList(ctx context.Context, c Config, list string, p blocklist.Pin) error {
	l, err := c.list(list)
	if err == nil {
		err = pinList(ctx, c, l, p)
	}
	if err != nil {
		return fmt.Errorf("pinning list %q: %w", list, err)
	}
	return nil
}

func pinList(ctx context.Context, c Config, l *List, p blocklist.Pin) error {
	if c.StateDir == "" || c.ReadOnly {
		return errors.New("there is no state directory to note it in")
	}
	if b, err := hex.DecodeString(p.Sum); err != nil || len(b) != len(digest{}) {
		return fmt.Errorf("%q is not a SHA-256 in hexadecimal", p.Sum)
	}
	tree, dir := atomicfile.In(c.StateDir), ListName(l.Name)
	if err := tree.MakeDirs(path.Join(dir, historyName)); err != nil {
		return err
	}
	if err := keepFiles(ctx, c, l, p); err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return tree.WriteFile(path.Join(dir, pinName), dir, newPattern, append(text, '\n'))
}

// keepFiles saves the list's files in the history if they hold what is to be pinned.
func keepFiles(ctx context.Context, c Config, l *List, p blocklist.Pin) error {
	paths, err := Files(l.Paths)
	opener := Opener{StateDir: c.StateDir}
	var stamps []stamp
	for _, file := range paths {
		var s stamp
		if s, err = opener.readStamped(ctx, file, nil); err != nil {
			break
		}
		stamps = append(stamps, s)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || sumOf(stamps) != p.Sum {
		return nil // what serves is in the index, and most often in the history
	}
	tree, dir := atomicfile.In(c.StateDir), path.Join(ListName(l.Name), historyName)
	v := &version{stamps: stamps, content: content{Entries: p.Entries}}
	err = archiveVersion(ctx, tree, dir, archiveJob{v, time.Now().UTC(), c.History}, func() {})
	if errors.Is(err, ErrChanged) {
		return nil // likewise
	}
	return err
}

// UnpinList lets what a list's files hold serve again.
func UnpinList(c Config, list string) error {
	tree := atomicfile.In(c.StateDir)
	err := tree.Remove(path.Join(ListName(list), pinName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list %q: %w", list, ErrNotPinned)
	}
	if err != nil {
		return fmt.Errorf("unpinning list %q: %w", list, err)
	}
	return tree.Sync(ListName(list))
}

// Pin calls [PinList] with the Store's configuration, and looks at the files. An empty p.Sum
// stands for the version that serves. If the version does not serve afterwards, Pin undoes the
// change and returns why.
func (s *Store) Pin(ctx context.Context, list string, p blocklist.Pin) (blocklist.Pin, error) {
	c, stats := s.current(list)
	switch {
	case stats == nil:
		return p, fmt.Errorf("list %q: %w", list, ErrUnknownList)
	case p.Sum == "" && stats.Sum == "":
		return p, fmt.Errorf("list %q: %w", list, ErrNothing)
	case p.Sum == "" || p.Sum == stats.Sum:
		p.Sum, p.Entries = stats.Sum, stats.Entries
	}
	before, err := ReadPin(c.StateDir, list) // a command may have pinned it a moment ago
	if err != nil {
		return p, err
	}
	if err := PinList(ctx, c, list, p); err != nil {
		return p, err
	}
	err = s.Rescan(ctx)
	if _, stats = s.current(list); stats != nil && stats.Sum == p.Sum {
		return p, nil // what is wrong with other lists was so before
	}
	if stats != nil && stats.Err != nil {
		err = stats.Err
	}
	pin, unread := ReadPin(c.StateDir, list)
	if err == nil || unread == nil && (pin == nil || pin.Sum != p.Sum || !pin.Since.Equal(p.Since)) {
		return p, fmt.Errorf("list %q: another command has pinned or unpinned it meanwhile", list)
	}
	err = fmt.Errorf("list %q is not pinned, since that version cannot serve: %w", list, err)
	if before != nil {
		return p, errors.Join(err, PinList(ctx, c, list, *before), s.rescanned(ctx))
	}
	return p, errors.Join(err, UnpinList(c, list), s.rescanned(ctx))
}

// Unpin calls [UnpinList] with the Store's configuration, and looks at the files.
func (s *Store) Unpin(ctx context.Context, list string) error {
	c, stats := s.current(list)
	if stats == nil {
		return fmt.Errorf("list %q: %w", list, ErrUnknownList)
	}
	if err := UnpinList(c, list); err != nil {
		return err
	}
	return s.rescanned(ctx)
}

// rescanned looks at the files. What is wrong with lists is in their statistics.
func (s *Store) rescanned(ctx context.Context) error {
	if err := s.Rescan(ctx); err != nil && (ctx.Err() != nil || errors.Is(err, ErrClosed)) {
		return err
	}
	return nil
}

// current returns the configuration and the statistics of a list; nil if there is no such list.
func (s *Store) current(list string) (Config, *blocklist.ListStats) {
	s.mu.Lock()
	c := s.config
	s.mu.Unlock()
	for _, l := range s.Set().Stats().Lists {
		if l.Name == list {
			return c, &l
		}
	}
	return c, nil
}

// pin returns the pin of the list; nil if it has none. If that cannot be read, it is what it was.
func (s *source) pin() *blocklist.Pin {
	if s.state.tree.Dir() == "" {
		return nil
	}
	p, err := readPin(s.state.tree, ListName(s.list.Name))
	if err != nil {
		if !s.state.readOnly { // else a tool, which may not read it
			s.state.say(err)
		}
		return s.live.pin
	}
	return p
}

// obeyPin returns what follows from a result if the list is pinned: any content but the pinned
// one is held, and the pinned one serves.
func (s *source) obeyPin(ctx context.Context, r scanResult, staged *scanResult) scanResult {
	r.pin = s.pin()
	if r.pin == nil || serves(r.good, r.pin) || ctx.Err() != nil {
		return r
	}
	why := r.err
	if why == nil {
		why = s.advise(fmt.Errorf("%w since %s, and the files have another version (entries: %d)", ErrPinned,
			r.pin.Since.UTC().Format("2006-01-02 15:04 UTC"), r.version().Entries), UnpinFirst)
	}
	good := s.live.good
	switch {
	case serves(good, r.pin) && !good.stale:
	case staged != nil && serves(staged.good, r.pin) && staged.good.current():
		good = staged.good
	default:
		v, err := s.buildPinned(ctx, r.pin.Sum)
		switch {
		case err == nil:
			good = v
		case good == nil && r.good != nil && s.setAsidePin(r.pin, err):
			r.pin = nil
			return r
		case !serves(good, r.pin):
			why = s.advise(fmt.Errorf("%w since %s at a version that cannot be restored: %w", ErrPinned,
				r.pin.Since.UTC().Format("2006-01-02 15:04 UTC"), err), UnpinFirst)
		}
	}
	pin := r.pin
	r = s.live.failed(r.stamps, why)
	r.good, r.pin = good, pin
	return r
}

// setAsidePin ends a pin that another version of the program has made, or whose list it has
// stored: this version understands neither, and the list must serve. Without such a sign the
// pin stands, and it reports false.
func (s *source) setAsidePin(p *blocklist.Pin, why error) bool {
	if p.Sum != "" && !s.state.isForeign(s.list.Name) {
		return false
	}
	name := path.Join(ListName(s.list.Name), pinName)
	if s.state.readOnly {
		return true
	}
	return s.state.setAside(name, fmt.Errorf("list %q is pinned at a version that cannot be restored: %w; its files are read again", s.list.Name, why))
}

// serves reports whether a version, which may be nil, is the pinned one.
func serves(v *version, p *blocklist.Pin) bool { return v != nil && sumOf(v.stamps) == p.Sum }

// buildPinned makes an index of the version in the history that has a sum.
func (s *source) buildPinned(ctx context.Context, sum string) (*version, error) {
	history := path.Join(ListName(s.list.Name), historyName)
	names, err := historyNames(s.state.tree, history)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, "-"+sum[:min(12, len(sum))]) {
			continue
		}
		dir := path.Join(history, name)
		m, err := readVersionMeta(s.state.tree, dir)
		if err != nil {
			return nil, err
		}
		stamps, err := m.stamps(idTime(name))
		if err != nil || sumOf(stamps) != sum {
			continue
		}
		v, err := s.buildKept(ctx, dir, stamps)
		if err == nil {
			s.state.log.Info("pinned version restored from history", "list", s.list.Name, "version", name, "entries", v.Entries)
		}
		return v, err
	}
	return nil, fmt.Errorf("the history does not have it: %w", fs.ErrNotExist)
}

// stamps returns stamps of the files of a saved version, which went live at a time.
func (m *versionMeta) stamps(live time.Time) ([]stamp, error) {
	stamps := make([]stamp, len(m.Files))
	for i, f := range m.Files {
		stamps[i] = stamp{Path: f.Path, attributes: attributes{Size: f.Size, Modified: live.UnixNano()}}
		if _, err := hex.Decode(stamps[i].Digest[:], []byte(f.SHA256)); err != nil || len(f.SHA256) != hex.EncodedLen(len(digest{})) {
			return nil, fmt.Errorf("%q is not a SHA-256", f.SHA256)
		}
	}
	return stamps, nil
}

// samePin reports whether both, which may be nil, are the same pin.
func samePin(a, b *blocklist.Pin) bool {
	if a == nil || b == nil {
		return a == b
	}
	other := *b
	other.Since = a.Since
	return a.Since.Equal(b.Since) && *a == other
}
