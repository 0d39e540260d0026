package store

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"

	"spamgate/internal/atomicfile"
)

// repairAttempt is an attempt to rebuild a version from the history.
type repairAttempt struct {
	version *version
	kept    string // the ID there; "": none, or it shall be tried again
}

// mend rebuilds a damaged index if the list's files cannot be used for that: they are gone,
// cannot be read, or are held. It uses the version in the history that has the same content.
// If that fails it returns the damaged one, in which lookups fail, and tries again when the
// history has something else.
func (s *source) mend(ctx context.Context, damaged *version, staged *scanResult) *version {
	if staged != nil && staged.good.current() && sameContent(staged.good.stamps, damaged.stamps) {
		return staged.good
	}
	log := s.state.log.With("list", s.list.Name)
	id, dir := s.state.keptVersion(s.list.Name, damaged.stamps)
	first, before := s.mending.version != damaged, s.mending
	s.mending = repairAttempt{damaged, id}
	if s.mending == before {
		return damaged
	}
	if first {
		log.Error("index damaged, and the list's files do not hold what it was made of")
	}
	if id == "" {
		if first {
			log.Error("index not rebuilt, since that version is not kept in history: lookups that need it fail until the list's files are put right or accepted")
		}
		return damaged
	}
	v, err := s.buildKept(ctx, dir, damaged.stamps)
	switch toState := (buildError{}); {
	case ctx.Err() != nil:
		s.mending = before
	case err == nil:
		log.Info("index rebuilt from the version kept in history", "version", id, "entries", v.Entries)
		return v
	case errors.As(err, &toState): // no space or the like, which may come back
		s.mending.kept = ""
		log.Debug("index not rebuilt", "version", id, "error", err)
	default:
		log.Error("index not rebuilt from the version kept in history: lookups that need it fail until the list's files are put right or accepted", "version", id, "error", err)
	}
	return damaged
}

// readAgain reads a version from the history if another build of the program made its index and the
// list's files do not hold it, because an update is held or the files are gone. Otherwise what this
// build leaves out would match until the list's files are put right. If the history does not have
// the version, or it cannot be read, the old index serves on.
func (s *source) readAgain(ctx context.Context, old *version, staged *scanResult) *version {
	if staged != nil && staged.good.current() && sameContent(staged.good.stamps, old.stamps) {
		return staged.good
	}
	id, dir := s.state.keptVersion(s.list.Name, old.stamps)
	if attempt := (repairAttempt{old, id}); id == "" || s.mending == attempt {
		return old
	} else {
		s.mending = attempt
	}
	log := s.state.log.With("list", s.list.Name, "version", id)
	v, err := s.buildKept(ctx, dir, old.stamps)
	switch {
	case ctx.Err() != nil:
		s.mending = repairAttempt{}
	case err == nil:
		log.Info("index of another version of the program, its list is read again from history", "entries", v.Entries)
		return v
	default:
		log.Warn("index of another version of the program serves, since its list cannot be read again from history", "error", err)
	}
	return old
}

// buildKept makes an index of a version in the history, from its directory there.
func (s *source) buildKept(ctx context.Context, dir string, stamps []stamp) (*version, error) {
	p := s.plan()
	p.known = sumOf(stamps)
	p.open = func(ctx context.Context, file string, use func(io.Reader) error) (stamp, error) {
		i := slices.IndexFunc(stamps, func(s stamp) bool { return s.Path == file })
		return stamps[i], readKept(ctx, s.state.tree, path.Join(dir, packedName(i)), stamps[i], use)
	}
	v, _, err := s.buildAs(ctx, p, stamps)
	if err == nil {
		v.fresh = false // it is kept already
	}
	return v, err
}

// keptVersion finds the version in a list's history that has the content of the files. It
// returns its ID, "" if there is none, and its directory.
func (s *state) keptVersion(list string, files []stamp) (id, dir string) {
	sum := sumOf(files)
	if s.dir == "" || sum == "" {
		return "", ""
	}
	history := path.Join(ListName(list), historyName)
	names, err := historyNames(s.tree, history)
	if err != nil {
		s.log.Debug("no history to look into", "list", list, "error", err)
	}
	for _, name := range slices.Backward(names) {
		dir := path.Join(history, name)
		if m, err := readVersionMeta(s.tree, dir); err == nil && m.Sum == sum {
			return name, dir
		}
	}
	return "", ""
}

// readKept calls use with the content of a saved file. It fails unless that is what the stamp says.
func readKept(ctx context.Context, tree atomicfile.Tree, packed string, want stamp, use func(io.Reader) error) error {
	meta := versionFileMeta{Path: want.Path, SHA256: hex.EncodeToString(want.Digest[:])}
	return extractFile(tree, packed, meta, func(_ string, content io.Reader) error {
		r := &untilDone{ctx, content}
		if err := use(r); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, r)
		return err
	})
}

// untilDone reads until the context ends.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (r *untilDone) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}
