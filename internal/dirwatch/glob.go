package dirwatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"spamgate/internal/atomicfile"
)

// ErrNoMatch is wrapped by the error for a glob that matches no file.
var ErrNoMatch = errors.New("no file matches")

// maxLinks is how many symbolic links one path may lead through, as in Linux.
const maxLinks = 40

// finder expands paths into files. It walks them one name at a time and resolves
// symbolic links itself, hop by hop. So it knows each directory on the way in which
// a change would lead elsewhere.
type finder struct {
	watch func(dir, name string) // dir is free of links; name may be a pattern
	files []string
}

// Find expands paths and globs (as in [filepath.Match]) in their order: the files of a
// glob by name, each file once. As in a shell, "*" does not match a leading dot, and
// a glob leaves directories out. An error is a *[fs.PathError].
//
// Find calls watch for each name in a directory that it is going to look at. A watch
// that begins then misses nothing: see [Watcher.Plan].
func Find(paths []string, watch func(dir, name string)) ([]string, error) {
	f := finder{watch: watch}
	for _, p := range paths {
		before := len(f.files)
		if err := f.walk(step{dir: "/", shown: "/", names: splitPattern(p)}); err != nil {
			return nil, err
		}
		if len(f.files) == before {
			return nil, &fs.PathError{Op: "open", Path: p, Err: ErrNoMatch}
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(f.files, func(p string) bool {
		again := seen[p]
		seen[p] = true
		return again
	}), nil
}

// step is a place on the way along a path.
type step struct {
	dir   string     // where we are, free of links
	shown string     // the same as the list's path puts it
	names []pathName // what is left to go
	links int        // links followed so far

	// A way that a pattern chose may lead nowhere without an error, unless the
	// pattern has led to a link, which somebody put there to lead somewhere.
	globbed bool
}

// pathName is one name of a path.
type pathName struct {
	text    string
	pattern bool // to be matched, not taken as it is
	hidden  bool // part of a link's target, and not of the path as the list puts it
}

func splitPattern(path string) []pathName {
	names := splitTarget(path)
	for i := range names {
		names[i].hidden = false
		names[i].pattern = strings.ContainsAny(names[i].text, `*?[\`)
	}
	return names
}

func splitTarget(path string) []pathName {
	var names []pathName
	for text := range strings.SplitSeq(path, "/") {
		if text != "" && text != "." {
			names = append(names, pathName{text: text, hidden: true})
		}
	}
	return names
}

func (f *finder) walk(s step) error {
	if len(s.names) == 0 {
		f.files = append(f.files, s.shown)
		return nil
	}
	name := s.names[0]
	s.names = s.names[1:]
	if name.text == ".." {
		s.dir = filepath.Dir(s.dir)
		if !name.hidden {
			s.shown += "/.." // not joined: what was left may have been a link
		}
		return f.walk(s)
	}
	f.watch(s.dir, name.text)
	if !name.pattern {
		return f.enter(s, name)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return s.fail(err)
	}
	s.globbed = true
	for _, e := range entries {
		if !matchName(name.text, e.Name()) {
			continue
		}
		if err := f.enter(s, pathName{text: e.Name()}); err != nil {
			return err
		}
	}
	return nil
}

// enter goes one name further, through a link if it is one.
func (f *finder) enter(s step, name pathName) error {
	path := joinName(s.dir, name.text)
	if !name.hidden {
		s.shown = joinName(s.shown, name.text)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return s.fail(err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		switch last := len(s.names) == 0; {
		case !last && !info.IsDir():
			return s.fail(syscall.ENOTDIR)
		case last && info.IsDir() && s.globbed:
			return nil
		}
		s.dir = path
		return f.walk(s)
	}
	target, err := os.Readlink(path)
	if err == nil && s.links == maxLinks {
		err = syscall.ELOOP
	}
	if len(s.names) == 0 {
		s.globbed = false
	}
	if err != nil {
		return s.fail(err)
	}
	if filepath.IsAbs(target) {
		s.dir = "/"
	}
	s.links++
	s.names = slices.Concat(splitTarget(target), s.names)
	return f.walk(s)
}

// fail returns the error with the path as the caller gave it, or none if a pattern was only trying.
func (s *step) fail(err error) error {
	nowhere := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
	if s.globbed && nowhere {
		return nil
	}
	return &fs.PathError{Op: "open", Path: s.shown, Err: atomicfile.WithoutPath(err)}
}

// joinName joins without the cleaning of filepath.Join, which would take "link/.." to be
// nothing.
func joinName(dir, name string) string {
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// matchName matches as a shell does: the pattern must have a leading dot if the name has one. The
// pattern must be well-formed.
func matchName(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") {
		return false
	}
	ok, err := filepath.Match(pattern, name)
	return ok && err == nil
}
