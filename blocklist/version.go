package blocklist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"spamgate/blocklist/listfile"
)

// Why the version of a list that is on disk is not believed. Use errors.Is.
var (
	ErrEmptied      = errors.New("empty, and it had entries before (a file that should be empty holds a comment)")
	ErrInvalidLines = errors.New("too many invalid lines")
	ErrException    = errors.New("an exception, which confirm = false rules out")
)

// From guardEntries entries on, a list with more than one invalid line in
// invalidShare is not believed: it is a list of something else.
const (
	guardEntries = 1000
	invalidShare = 100
)

// version is one list as it was read, whole and good. It is immutable.
type version struct {
	index  *index
	stamps []stamp
	loaded time.Time

	entries, exceptions, duplicates, invalid int

	files    []FileStats
	problems []FileProblem
}

// nothing is the version of an optional list that has none.
var nothing = &version{index: &index{}}

// readOptions is how a list's files are read. Lists with equal options get equal
// versions from equal files.
type readOptions struct {
	listfile.Options
	noExceptions bool
}

func (c *Config) readOptions(l *List) readOptions {
	return readOptions{
		Options: listfile.Options{
			Allow:             l.Type == Allow,
			Exact:             l.Exact,
			AllowPublicSuffix: l.AllowPublicSuffix,
		},
		noExceptions: !c.Confirm,
	}
}

// readVersion reads the files that stamps describe. It fails with ErrChanged if
// they are no longer as described. Before is the version that it would replace,
// nil if there is none.
func readVersion(ctx context.Context, o readOptions, stamps []stamp, before *version) (*version, error) {
	v := &version{stamps: stamps}
	b := newIndexBuilder()
	for i, s := range stamps {
		if s.size == 0 && before.entriesOf(s.path) > 0 {
			return nil, &fs.PathError{Op: "read", Path: s.path, Err: ErrEmptied}
		}
		described := len(v.problems)
		if err := v.readFile(ctx, o, b, i); err != nil {
			return nil, err
		}
		f := &v.files[i]
		if err := tooManyInvalid(f.Entries, f.Invalid, before.entriesOf(f.Path), v.problems[described:]); err != nil {
			return nil, &fs.PathError{Op: "read", Path: f.Path, Err: err}
		}
		v.entries += f.Entries
		v.invalid += f.Invalid
	}
	if err := tooManyInvalid(v.entries, v.invalid, before.entriesOf(""), v.problems); err != nil {
		return nil, err
	}
	v.index, v.duplicates = b.finish()
	v.loaded = time.Now()
	return v, nil
}

// readFile reads one of the files into the builder.
func (v *version) readFile(ctx context.Context, o readOptions, b *indexBuilder, file int) error {
	want := v.stamps[file]
	stats := FileStats{Path: want.path, Size: want.size, Modified: time.Unix(0, want.modified)}
	problems := 0
	parse := func(r io.Reader) error {
		_, err := listfile.Read(r, o.Options,
			func(e listfile.Entry) error {
				stats.Entries++
				if e.Exception {
					v.exceptions++
					if o.noExceptions {
						return fmt.Errorf("line %d: %w", e.Line, ErrException)
					}
				}
				return b.add(file, e)
			},
			func(p listfile.Problem) {
				stats.Invalid++
				if problems++; problems <= MaxProblems {
					v.problems = append(v.problems, FileProblem{want.path, p})
				}
			})
		if err != nil {
			return &fs.PathError{Op: "read", Path: want.path, Err: bare(err)}
		}
		return nil
	}
	got, err := readStamped(ctx, want.path, parse)
	if err != nil {
		return err
	}
	if got.attributes != want.attributes || got.digest != want.digest {
		return &fs.PathError{Op: "read", Path: want.path, Err: ErrChanged}
	}
	v.files = append(v.files, stats)
	return nil
}

// entriesOf is how many entries the version has from a file, or for "" from all.
func (v *version) entriesOf(path string) int {
	if v == nil {
		return 0
	}
	if path == "" {
		return v.entries
	}
	if i := slices.IndexFunc(v.files, func(f FileStats) bool { return f.Path == path }); i >= 0 {
		return v.files[i].Entries
	}
	return 0
}

// tooManyInvalid applies the guard to a file or a list. Its size is that of the
// larger version, so that an error page in the place of a long list is noticed
// however short it is.
func tooManyInvalid(entries, invalid, before int, problems []FileProblem) error {
	lines := entries + invalid
	if max(lines, before) < guardEntries || invalid*invalidShare <= lines {
		return nil
	}
	return fmt.Errorf("%w: %d of %d; the first: %s: %v", ErrInvalidLines, invalid, lines, problems[0].File, problems[0].Problem)
}
