// Package listedit changes list files that other programs may be reading, and
// that other editors may want to change at the same moment.
//
// A changed file replaces the old one in one step (rename) once all of it is on the
// disk, so a reader gets either the old content or the new. The new file has the owner,
// group, mode and extended attributes of the old one, so its readers can still read it;
// if that is not permitted nothing is changed. A symbolic link stays, and the file that
// it leads to is changed. Editors of this package wait for each other (flock). If
// another program changes the file meanwhile, nothing is changed.
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

	"spamgate/internal/atomicfile"
)

// Why a file is not changed, apart from the errors of the file system. Use
// errors.Is.
var (
	// ErrUnchanged is returned by functions that edit: the file is as it should be.
	ErrUnchanged = errors.New("there is nothing to change")

	ErrNotRegular = errors.New("not a regular file")
	ErrLinks      = errors.New("the file has several names (hard links), which a change would separate")
	ErrOwner      = errors.New("a changed copy could not have the owner and the permissions of the file")
	ErrPacked     = errors.New("the file is packed, so no line of it can be changed; unpack it")
	ErrChanged    = errors.New("another program changed the file meanwhile")
	ErrTooLarge   = errors.New("it would be larger than max_bytes allows, and no gate would take it: raise max_bytes for the list, or put the entries into another file")
)

// Options say how a file is edited. The zero value is valid.
type Options struct {
	// DryRun makes all checks but no change.
	DryRun bool

	// Waiting, if not nil, is called once if the wait for other editors takes longer
	// than a second.
	Waiting func()

	// Create makes the file if it is missing, with the owner of its directory and
	// readable for all.
	Create bool

	// StateDir, if not empty, is a directory at or below which the file is. No
	// symbolic link in it is followed, since another user may write to it (see
	// [atomicfile.Tree]).
	StateDir string

	// MaxBytes, if not 0, bounds the new content: more is an ErrTooLarge.
	MaxBytes int64

	// Before, if not nil, is called when the new content is on the disk but not yet
	// in its place. If it returns an error the file is not changed.
	Before func(Change) error

	// Publish, if not nil, is called after Before, when nothing but the disk can prevent the
	// change any more: it makes the new content known elsewhere. If it returns an error the
	// file is not changed. Old is the locked file. Both files are at any offset.
	Publish func(ctx context.Context, c Change, old, content *os.File) error

	// Log, if not nil, gets a Record of the change. It is written when the change
	// is made, so the function that edits may still fill it in.
	Log    *Log
	Record *Record

	// RecordFirst writes the record before the change is made, so that no change is
	// without a record. If the change then fails, another record says so.
	RecordFirst bool
}

// Change is the result of an edit; with Options.DryRun what it would be.
type Change struct {
	// File is the path of the file itself, without links.
	File string

	// Changed is false if there was nothing to change.
	Changed bool

	// Size and SHA256 are those of the new content.
	Size   int64
	SHA256 [sha256.Size]byte
}

// Rewrite replaces the content of the file at path by what edit writes to w. Edit may
// read old several times (Seek). If it fails nothing is changed; if its error is
// ErrUnchanged, Rewrite returns no error. If ctx ends before the new content is in its
// place, the file stays as it was.
func Rewrite(ctx context.Context, path string, edit func(old io.ReadSeeker, w io.Writer) error, o Options) (Change, error) {
	old, err := open(ctx, path, o)
	if err != nil {
		return Change{}, err
	}
	defer old.file.Close() // releases the lock, after everything else
	change := Change{File: old.target}
	if o.DryRun {
		if err := old.write(ctx, io.Discard, edit, &change, o.MaxBytes); err != nil {
			return change, fmt.Errorf("%s could not be changed: %w", path, err)
		}
		return change, nil
	}
	var log *os.File
	if o.Log != nil {
		if log, err = o.Log.open(); err != nil {
			return change, fmt.Errorf("%s is not changed: %w", path, err)
		}
		defer log.Close() // synced
	}
	old.removeLeftovers()
	replacement, err := old.replacement()
	if err != nil {
		return change, fmt.Errorf("%s is not changed: %w", path, err)
	}
	defer replacement.Discard()
	if err := old.write(ctx, replacement, edit, &change, o.MaxBytes); err != nil {
		return change, fmt.Errorf("%s is not changed: %w", path, err)
	} else if !change.Changed {
		return change, nil
	}
	if err := old.put(ctx, replacement, change, o, log); err != nil {
		return change, fmt.Errorf("%s is not changed: %w", path, err)
	}
	if err := replacement.SyncPlace(old.place()); err != nil {
		return change, fmt.Errorf("%s is changed, but perhaps not yet on the disk: %w", path, err)
	}
	if log != nil && !o.RecordFirst {
		if err := o.Record.appendTo(log); err != nil {
			return change, fmt.Errorf("%s is changed, but that is not recorded: %w", path, err)
		}
	}
	return change, nil
}

// original is a file while it is edited.
type original struct {
	path   string // the path of the call
	target string // the path without links
	file   *os.File
	info   fs.FileInfo // when it was opened

	missing bool // there is no file: see openMissing

	// The name of the file in a directory where no link is followed (see
	// [Options.StateDir]); "" for a file that is opened by its path.
	tree atomicfile.Tree
	name string
}

// place returns the destination of a replacement: a path or a name in tree.
func (f *original) place() string {
	if f.name != "" {
		return f.name
	}
	return f.target
}

// replacement makes an empty file that will replace the original.
func (f *original) replacement() (*atomicfile.File, error) {
	if f.missing {
		return f.newFile()
	}
	return f.newReplacement()
}

// open opens the file at path and, unless it is for a dry run, locks it.
func open(ctx context.Context, path string, o Options) (*original, error) {
	long := time.NewTimer(time.Second) // for all waits together
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
		// While we waited the file may have been replaced, and we have locked the
		// old one.
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
	// Checked before the file is opened, since opening a named pipe would block.
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
	return newOriginal(original{path: path, target: target, file: file})
}

// newOriginal completes f, whose file is open. A file with several names is an error.
func newOriginal(f original) (*original, error) {
	var err error
	if f.info, err = f.file.Stat(); err == nil && names(f.info) > 1 {
		err = &fs.PathError{Op: "edit", Path: f.path, Err: ErrLinks}
	}
	if err != nil {
		f.file.Close()
		return nil, err
	}
	return &f, nil
}

// same reports whether the path still leads to the open file, and nobody has changed
// that since it was opened.
func (f *original) same() (bool, error) {
	current, err := f.stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(current, f.info) && current.Size() == f.info.Size() &&
		current.ModTime().Equal(f.info.ModTime()) && changeTime(current) == changeTime(f.info), nil
}

// write calls edit with w, and records the result in change.
func (f *original) write(ctx context.Context, w io.Writer, edit func(io.ReadSeeker, io.Writer) error, change *Change, maxBytes int64) error {
	sum := sha256.New()
	size := &counter{most: maxBytes}
	buffered := bufio.NewWriterSize(io.MultiWriter(size, w, sum), copyBuffer)
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
	change.Changed, change.Size, change.SHA256 = true, size.n, [sha256.Size]byte(sum.Sum(nil))
	return nil
}

// put moves the replacement to the file's place.
func (f *original) put(ctx context.Context, r *atomicfile.File, change Change, o Options, log *os.File) error {
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
	if !f.missing {
		if same, err := f.same(); err != nil {
			return err
		} else if !same {
			return ErrChanged
		}
	}
	if o.Publish != nil {
		if err := o.Publish(ctx, change, f.file, r.File); err != nil {
			return err
		}
	}
	if !o.RecordFirst || log == nil {
		return f.move(r)
	}
	if err := o.Record.appendTo(log); err != nil {
		return err
	}
	err := f.move(r)
	if err != nil {
		err = errors.Join(err, o.Record.notMade(err).appendTo(log))
	}
	return err
}

// move renames the replacement.
func (f *original) move(r *atomicfile.File) error {
	if !f.missing {
		return r.Place(f.place())
	}
	err := r.PlaceNew(f.place())
	if errors.Is(err, fs.ErrExist) {
		return ErrChanged
	}
	return err
}

// counter counts the bytes that are written, and fails if there are more than most (0: any).
type counter struct{ n, most int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	if c.most > 0 && c.n > c.most {
		return 0, ErrTooLarge
	}
	return len(p), nil
}

// stoppable is a file that cannot be read after ctx has ended.
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

// WriteTo replaces that of os.File, which would not end with the context.
func (s stoppable) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{s})
}
