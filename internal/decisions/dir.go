package decisions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"spamgate/internal/atomicfile"
)

// folder is the directory of the history. It has database files named for the day of their
// rows and a number that grows with each file: 2026-11-23-000012.db, beside each SQLite's own
// files and a file that the process locks which writes to the database.
type folder struct {
	tree atomicfile.Tree // the directory above, so that the directory itself cannot be a link
	name string
}

func newFolder(dir string) folder {
	dir = filepath.Clean(dir)
	return folder{atomicfile.In(filepath.Dir(dir)), filepath.Base(dir)}
}

func (f folder) path(name string) string { return f.tree.Path(f.name + "/" + name) }

// file is the name of a database file, taken apart.
type file struct {
	day    string // "2006-01-02", in UTC
	number int64
	bytes  int64 // with SQLite's own files
}

const dayFormat = "2006-01-02"

func (f file) name() string { return fmt.Sprintf("%s-%06d.db", f.day, f.number) }

// end returns the time at which the day of a file is over: all its rows are older.
func (f file) end() int64 {
	t, _ := time.Parse(dayFormat, f.day)
	return t.AddDate(0, 0, 1).UnixNano()
}

// start returns the time at which the day of a file begins.
func (f file) start() int64 {
	t, _ := time.Parse(dayFormat, f.day)
	return t.UnixNano()
}

// parseFile takes the name of a file apart.
func parseFile(name string) (f file, ok bool) {
	if len(name) < len(dayFormat)+2 {
		return file{}, false
	}
	if _, err := fmt.Sscanf(name[len(dayFormat):], "-%d.db", &f.number); err != nil {
		return file{}, false
	}
	f.day = name[:len(dayFormat)]
	_, err := time.Parse(dayFormat, f.day)
	return f, err == nil && f.number > 0 && f.name() == name
}

// files returns the database files, in the order of their numbers. A missing directory has
// none.
func (f folder) files() ([]file, error) {
	entries, err := f.tree.ReadDir(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []file
	for _, e := range entries {
		if file, ok := parseFile(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, file)
		}
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

// besides are the endings of the files that belong to a database.
var besides = []string{"", "-wal", "-shm", "-journal"}

// size returns the bytes of a database file with those that belong to it.
func (f folder) size(name string) (total int64) {
	for _, end := range besides {
		if info, err := f.tree.Stat(f.name + "/" + name + end); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total
}

// errLocked says that another process writes to a file.
var errLocked = errors.New("another process writes to it")

// lockName returns the name of the file that whoever writes to a database locks.
func (f folder) lockName(name string) string {
	return f.name + "/" + strings.TrimSuffix(name, ".db") + ".lock"
}

// lock locks a database file for writing, until unlock.
func (f folder) lock(name string) (unlock func(), err error) {
	l, err := f.tree.Append(f.lockName(name))
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		err = f.checkLock(name, l)
	}
	if err == nil {
		return func() { l.Close() }, nil
	}
	l.Close()
	if err == syscall.EWOULDBLOCK {
		err = errLocked
	}
	return nil, err
}

// checkLock returns errLocked if a locked file has been removed meanwhile, with its database.
func (f folder) checkLock(name string, locked *os.File) error {
	info, err := locked.Stat()
	if err != nil {
		return err
	}
	current, err := f.tree.StatFile(f.lockName(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(current, info) {
		return errLocked
	}
	return err
}

// remove unlinks a database file, unless a process writes to it.
func (f folder) remove(name string) error {
	unlock, err := f.lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	for _, end := range besides {
		err = errors.Join(err, ignoreMissing(f.tree.Remove(f.name+"/"+name+end)))
	}
	if err != nil {
		return err
	}
	return ignoreMissing(f.tree.Remove(f.lockName(name)))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// create makes an empty database file, whose lock the caller has. Nobody has it open: to close
// a file that is open elsewhere in the process would end SQLite's locks.
func (f folder) create(name string) error {
	made, err := f.tree.Append(f.name + "/" + name)
	if err != nil {
		return err
	}
	return made.Close()
}

// exists reports whether a name is taken, by whatever.
func (f folder) exists(name string) bool {
	_, err := f.tree.Stat(f.name + "/" + name)
	return err == nil || atomicfile.IsTrap(err)
}

// check returns what a database file is now, and an error if it is not a regular file.
func (f folder) check(name string) (os.FileInfo, error) {
	return f.tree.StatFile(f.name + "/" + name)
}
