package versions

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist/store"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/term"
)

// What a rollback does with a file.
const (
	stepWrite   = "write"     // the file has another content
	stepCreate  = "create"    // the file is missing
	stepRestore = "restore"   // it is missing, and an earlier rollback has set it aside
	stepAside   = "set_aside" // the version did not have it
)

// rollbackStep is what a rollback does with one file.
type rollbackStep struct {
	File string `json:"file"`
	What string `json:"what"`

	// Aside is the other name of a file that is set aside, or was. No list's path
	// matches it.
	Aside string `json:"aside,omitempty"`

	kept string // the file's path in the version
	sum  string // the SHA-256 of its content there
}

// String says what is done, or would be done.
func (s rollbackStep) String() string {
	file, aside := term.ShortPath(s.File), term.ShortPath(s.Aside)
	switch s.What {
	case stepCreate:
		return file + ": missing; written again"
	case stepRestore:
		return file + ": missing; renamed from " + aside
	case stepAside:
		return file + ": not in that version; renamed to " + aside
	}
	return file + ": written"
}

// plan returns what is to be done so that the list's files are those of a version. It changes
// nothing.
func (r *rollback) plan(v store.VersionInfo) ([]rollbackStep, error) {
	if r.target.Managed {
		return []rollbackStep{{File: r.target.Copy, What: stepWrite}}, nil
	}
	var steps []rollbackStep
	placed := map[string]string{}
	for i, kept := range v.Files {
		file, err := r.place(v, kept)
		if err != nil {
			return nil, err
		}
		if other := placed[file]; other != "" {
			return nil, fmt.Errorf("list %s: version %s has both %s and %s, which would both be %s now", r.target.Name, v.ID, other, kept, file)
		}
		placed[file] = kept
		step, err := r.stepFor(file)
		if err != nil {
			return nil, err
		}
		step.kept, step.sum = kept, v.FileSums[i]
		switch now, err := r.fileSum(file); {
		case step.What == stepCreate:
			step.restore(r)
		case err != nil:
			return nil, err
		case now == step.sum:
			continue
		}
		steps = append(steps, step)
	}
	for _, file := range r.target.Paths {
		if placed[file] != "" {
			continue
		}
		aside, err := r.asideName(file)
		if err != nil {
			return nil, err
		}
		steps = append(steps, rollbackStep{File: file, What: stepAside, Aside: aside})
	}
	return steps, nil
}

// place returns where a version's file belongs now: the list's path may have changed since.
func (r *rollback) place(v store.VersionInfo, kept string) (string, error) {
	path := r.target.Path
	moved := filepath.Join(filepath.Dir(path), filepath.Base(kept))
	switch {
	case matchesPath(path, kept) || kept == path:
		return kept, nil
	case len(v.Files) == 1 && !isGlob(path):
		return path, nil
	case !isGlob(filepath.Dir(path)) && matchesPath(path, moved):
		return moved, nil
	}
	return "", fmt.Errorf("list %s: version %s has the file %s, which path = %q does not match: set path to one that matches it, and run this again; or choose another version of spamgate lists rollback %s --list-versions",
		r.target.Name, v.ID, term.ShortPath(kept), term.ShortPath(path), term.ShellWord(r.target.Name))
}

// stepFor returns the step that writes or creates a file.
func (r *rollback) stepFor(file string) (rollbackStep, error) {
	if slices.Contains(r.target.Paths, file) {
		return rollbackStep{File: file, What: stepWrite}, nil
	}
	_, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rollbackStep{File: file, What: stepCreate}, nil
	case err == nil:
		err = fmt.Errorf("list %s: %s is not a readable file; move it away, and run this again", r.target.Name, term.ShortPath(file))
	}
	return rollbackStep{}, err
}

// restore turns the step of a missing file into one that renames it back, if it was set aside
// with this content.
func (s *rollbackStep) restore(r *rollback) {
	for name := range asideNames(s.File) {
		if sum, err := r.fileSum(name); err == nil && sum == s.sum && !r.isListed(name) {
			s.What, s.Aside = stepRestore, name
			return
		}
	}
}

// maxAside is how many files may be set aside under one name.
const maxAside = 100

// asideNames yields the names under which a file may be set aside: first visible ones, then
// those that a path such as "*" does not match.
func asideNames(file string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, start := range []string{"", "."} {
			for n := range maxAside {
				name := start + filepath.Base(file) + ".disabled"
				if n > 0 {
					name += fmt.Sprintf(".%d", n+1)
				}
				if !yield(filepath.Join(filepath.Dir(file), name)) {
					return
				}
			}
		}
	}
}

// asideName returns a free name for a file that the list is no longer to have.
func (r *rollback) asideName(file string) (string, error) {
	for _, l := range r.Config.Lists {
		if l.Name != r.target.Name && matchesPath(l.Files(), file) {
			return "", fmt.Errorf("list %s: that version does not have the file %s, and list %s has it, too; let path of one of the two not match it, and run this again",
				r.target.Name, term.ShortPath(file), l.Name)
		}
	}
	for name := range asideNames(file) {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) && !r.isListed(name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("list %s: that version does not have the file %s; move it to where path = %q does not match it, and run this again",
		r.target.Name, term.ShortPath(file), term.ShortPath(r.target.Path))
}

// isListed reports whether a file of this name would belong to a list.
func (r *rollback) isListed(file string) bool {
	for _, l := range r.Config.Lists {
		if matchesPath(l.Files(), file) {
			return true
		}
	}
	return false
}

func (r *rollback) fileSum(path string) (string, error) { return session.SumOfFile(r.target, path) }

// matchesPath reports whether a list with a path has a file of this name: as in a shell, "*" does
// not match a leading dot.
func matchesPath(path, file string) bool {
	names, patterns := strings.Split(filepath.Clean(file), "/"), strings.Split(filepath.Clean(path), "/")
	if len(names) != len(patterns) {
		return false
	}
	for i, pattern := range patterns {
		ok, err := filepath.Match(pattern, names[i])
		if !ok || err != nil || strings.HasPrefix(names[i], ".") && !strings.HasPrefix(pattern, ".") {
			return false
		}
	}
	return true
}

func isGlob(path string) bool { return strings.ContainsAny(path, `*?[\`) }
