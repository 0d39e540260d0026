package versions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist/store"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/term"
)

// What a rollback does with a file.
const (
	stepWrite  = "write"  // the file has another content
	stepCreate = "create" // the file is missing
)

// rollbackStep is the writing of one file.
type rollbackStep struct {
	File string `json:"file"`
	What string `json:"what"` // stepWrite or stepCreate

	kept string // the file's path in the version
}

// String says what is done, or would be done.
func (s rollbackStep) String() string {
	if s.What == stepCreate {
		return term.ShortPath(s.File) + ": missing; written again"
	}
	return term.ShortPath(s.File) + ": written"
}

// plan returns what is to be done so that the list's files are those of a version. It changes
// nothing.
func (r *rollback) plan(v store.VersionInfo) ([]rollbackStep, error) {
	if r.target.Managed {
		return []rollbackStep{{File: r.target.Copy, What: stepWrite}}, nil
	}
	var steps []rollbackStep
	placed := map[string]bool{}
	for i, kept := range v.Files {
		file, err := r.place(v, kept)
		if err != nil {
			return nil, err
		}
		placed[file] = true
		sum, err := session.SumOfFile(r.target, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			steps = append(steps, rollbackStep{file, stepCreate, kept})
		case err != nil:
			return nil, err
		case sum != v.FileSums[i]:
			steps = append(steps, rollbackStep{file, stepWrite, kept})
		}
	}
	for _, file := range r.target.Paths {
		if !placed[file] {
			return nil, fmt.Errorf("list %s: version %s does not have the file %s: move it to where path = %q does not match it, and run this again",
				r.target.Name, v.ID, term.ShortPath(file), term.ShortPath(r.target.Path))
		}
	}
	return steps, nil
}

// place returns where a version's file belongs now: the list's path may have changed since.
func (r *rollback) place(v store.VersionInfo, kept string) (string, error) {
	path, files := r.target.Path, r.target.Paths
	matches, err := filepath.Match(path, kept)
	switch {
	case err == nil && matches, slices.Contains(files, kept):
		return kept, nil
	case len(v.Files) == 1 && len(files) == 1:
		return files[0], nil
	case len(v.Files) == 1 && len(files) == 0 && !strings.ContainsAny(path, `*?[\`):
		return path, nil
	}
	return "", fmt.Errorf("list %s: version %s has the file %s, which path = %q does not match: set path to one that matches it, and run this again; or choose another version of spamgate lists rollback %s --list-versions",
		r.target.Name, v.ID, term.ShortPath(kept), term.ShortPath(path), term.ShellWord(r.target.Name))
}

// write writes the files, one after the other. After an error the same command goes on with those
// that are left.
func (r *rollback) write(v store.VersionInfo, steps []rollbackStep) error {
	var done []string
	for _, s := range steps {
		e := r.Edit(r.target, s.File)
		e.Create = s.What == stepCreate
		e.Before = func() error {
			e.AcceptSum(r, v.Sum)
			return nil
		}
		_, err := e.Rewrite(r, func(_ io.ReadSeeker, w io.Writer) error {
			e.Record.What = "put version " + v.ID + " back"
			return r.extract(v, s, w)
		})
		if err != nil && len(done) > 0 && !r.DryRun {
			return fmt.Errorf("%w; changed before that: %s; to finish: spamgate lists rollback %s --to %s", err, session.ShortenAll(done), term.ShellWord(r.target.Name), v.ID)
		}
		if err != nil {
			return err
		}
		done = append(done, s.File)
	}
	return nil
}

// extract copies the content that a file is to have.
func (r *rollback) extract(v store.VersionInfo, s rollbackStep, w io.Writer) error {
	return store.ExtractVersion(r.Config.State.Dir, r.target.Name, v.ID, func(path string, content io.Reader) error {
		if path != s.kept {
			return nil
		}
		_, err := io.Copy(w, content)
		return err
	})
}
