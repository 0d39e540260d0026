// Package listedit changes list files that other programs may be reading, and
// that other editors may want to change at the same moment.
//
// A changed file takes the place of the old one in one step (rename), when all
// of it is on the disk: whoever opens the file reads the old content or the new.
// The new file has the owner, group, mode and extended attributes of the old
// one, so that whoever could read the list still can; where that is not allowed
// nothing is changed. A symbolic link stays, and the file it leads to is
// changed. Editors of this package wait for each other (flock); what others did
// to the file meanwhile is noticed, and nothing is changed then.
package listedit

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"spamgate/internal/durable"
)

// Why a file is not changed, apart from the errors of the file system. Use
// errors.Is.
var (
	// ErrUnchanged is for functions that edit: the file is as it should be.
	ErrUnchanged = errors.New("there is nothing to change")

	ErrNotRegular = errors.New("not a regular file")
	ErrLinks      = errors.New("the file has several names (hard links), which a change would part")
	ErrOwner      = errors.New("a changed copy could not have the owner and the permissions of the file")
	ErrPacked     = errors.New("the file is packed, so no line of it can be changed; unpack it")
	ErrChanged    = errors.New("another program changed the file meanwhile")
)

// Options say how a file is edited. The zero value is of use.
type Options struct {
	// DryRun does everything but change something.
	DryRun bool

	// Waiting, if not nil, is called once if other editors have to be waited for
	// longer than a second.
	Waiting func()

	// Create makes the file if it is not there, with the owner of its directory,
	// for all to read.
	Create bool

	// StateDir, if not empty, is a directory that the file is in, perhaps some
	// directories below, and in which no symbolic link is followed: somebody else
	// may write to it (see [durable.Tree]).
	StateDir string

	// Before, if not nil, is called when the new content is on the disk and not
	// yet in its place. An error of it leaves the file as it is.
	Before func(Change) error

	// Log, if not nil, is where a change is recorded, as Record says. Record is
	// looked at when the change is made, so the function that edits may still
	// fill it in.
	Log    *Log
	Record *Record
}

// Change is what an edit did; with Options.DryRun what it would have done.
type Change struct {
	// File is the file itself, where links led to it.
	File string

	// Changed is false where there was nothing to change.
	Changed bool

	// Size and SHA256 are those of the new content.
	Size   int64
	SHA256 [sha256.Size]byte
}

// Rewrite replaces the content of the file at path by what edit writes to w. Edit
// may read old several times (Seek). If it fails nothing is changed; if its error
// is ErrUnchanged, Rewrite has none. When ctx ends before the file is in its
// place, it stays as it was.
func Rewrite(ctx context.Context, path string, edit func(old io.ReadSeeker, w io.Writer) error, o Options) (Change, error) {
	old, err := open(ctx, path, o)
	if err != nil {
		return Change{}, err
	}
	defer old.file.Close() // and so gives the lock back, last of all
	change := Change{File: old.target}
	if o.DryRun {
		if err := old.write(ctx, io.Discard, edit, &change); err != nil {
			return change, fmt.Errorf("%s could not be changed: %w", path, err)
		}
		return change, nil
	}
	var log *openLog
	if o.Log != nil {
		if log, err = o.Log.open(); err != nil {
			return change, fmt.Errorf("%s is not changed: %w", path, err)
		}
		defer log.close()
	}
	old.removeLeftovers()
	replacement, err := old.replacement()
	if err != nil {
		return change, fmt.Errorf("%s is not changed: %w", path, err)
	}
	defer replacement.Discard()
	if err := old.write(ctx, replacement, edit, &change); err != nil {
		return change, fmt.Errorf("%s is not changed: %w", path, err)
	} else if !change.Changed {
		return change, nil
	}
	if err := old.put(ctx, replacement, change, o); err != nil {
		return change, fmt.Errorf("%s is not changed: %w", path, err)
	}
	if err := replacement.SyncPlace(old.place()); err != nil {
		return change, fmt.Errorf("%s is changed, but perhaps not yet on the disk: %w", path, err)
	}
	if log != nil {
		if err := log.append(o.Record); err != nil {
			return change, fmt.Errorf("%s is changed, but that is not recorded: %w", path, err)
		}
	}
	return change, nil
}

// original is a file while it is edited.
type original struct {
	path   string // as it was given
	target string // without links
	file   *os.File
	info   fs.FileInfo // when it was opened

	missing bool // there is none: see openMissing

	// The file as a name in a directory where no link is followed, see
	// [Options.StateDir]; "" for one that is reached by its path.
	tree durable.Tree
	name string
}

// place returns where a replacement goes, in the way in which it was made.
func (f *original) place() string {
	if f.name != "" {
		return f.name
	}
	return f.target
}

// replacement makes an empty file that is to take the original's place.
func (f *original) replacement() (*durable.File, error) {
	if f.missing {
		return f.newFile()
	}
	return f.newReplacement()
}

// open opens the file at path and, unless it is for a dry run, locks it.
func open(ctx context.Context, path string, o Options) (*original, error) {
	long := time.NewTimer(time.Second) // of all waits together, and so is told once
	defer long.Stop()
	for {
		old, err := openFile(path, o)
		if o.Create && errors.Is(err, fs.ErrNotExist) {
			return openMissing(path, o)
		}
		if err != nil || o.DryRun {
			return old, err
		}
		if err := lock(ctx, old.file, long.C, o.Waiting); err != nil {
			old.file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// While we waited the file may have been replaced: then we have locked
		// one that nobody reads any more.
		same, err := old.same()
		if same && err == nil {
			return old, nil
		}
		old.file.Close()
		if err != nil {
			return nil, err
		}
	}
}

func openFile(path string, o Options) (*original, error) {
	if tree, name, ok := o.inState(path); ok {
		return openInState(path, tree, name)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	// Asked before the file is opened: to open a named pipe is to wait.
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "edit", Path: path, Err: ErrNotRegular}
	}
	file, err := os.Open(target)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && names(info) > 1 {
		err = &fs.PathError{Op: "edit", Path: path, Err: ErrLinks}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &original{path: path, target: target, file: file, info: info}, nil
}

// same reports whether the path still leads to the file that is open, and the
// file is as it was when it was opened. Afterwards a change made before the lock
// was had does not count.
func (f *original) same() (bool, error) {
	now, err := f.stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(now, f.info) && now.Size() == f.info.Size() &&
		now.ModTime().Equal(f.info.ModTime()) && changeTime(now) == changeTime(f.info), nil
}

// write has edit write to w, and says in change what came of it.
func (f *original) write(ctx context.Context, w io.Writer, edit func(io.ReadSeeker, io.Writer) error, change *Change) error {
	sum := sha256.New()
	size := &counter{}
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum, size), 256<<10)
	err := edit(stoppable{ctx, f.file}, buffered)
	if errors.Is(err, ErrUnchanged) {
		return nil
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	change.Changed, change.Size = true, size.n
	sum.Sum(change.SHA256[:0])
	return nil
}

// put puts the replacement in the file's place.
func (f *original) put(ctx context.Context, r *durable.File, change Change, o Options) error {
	if err := r.Sync(); err != nil {
		return fmt.Errorf("writing the new content to the disk: %w", err)
	}
	if o.Before != nil {
		if err := o.Before(change); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if f.missing {
		if err := r.PlaceNew(f.place()); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return ErrChanged
	}
	if same, err := f.same(); err != nil {
		return err
	} else if !same {
		return ErrChanged
	}
	return r.Place(f.place())
}

// counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// stoppable is a file whose reading ends when ctx does.
type stoppable struct {
	ctx context.Context
	*os.File
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.File.Read(p)
}

// WriteTo hides os.File's own, which would not end with the context.
func (s stoppable) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{s})
}
