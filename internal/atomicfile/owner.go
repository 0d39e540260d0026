package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrOwner says that a directory belongs neither to root nor to the user of this
// process. Use errors.Is.
var ErrOwner = errors.New("this directory belongs to another user")

// Check reports whether the directory is safe for long use, such as by a gate as its
// state directory. The error is an [ErrShared] or an [ErrOwner]: somebody else could
// replace each file. A non-empty warning is about a group that could, which may be
// intended, or about a parent directory in which everybody could replace this one. A
// missing directory is safe.
func (t Tree) Check() (warning string, err error) {
	var info fs.FileInfo
	err = t.do("use", func(root *os.Root) error {
		if info, err = root.Stat("."); err != nil {
			return err
		}
		return checkOwner(info)
	}, ".")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.Mode().Perm()&0o020 != 0:
		return fmt.Sprintf("%s: its group may write to this directory (mode %v), and so can decide which mail passes; run chmod g-w on it, unless this is intended", t.dir, info.Mode()), nil
	}
	return t.checkParents(), nil
}

// checkParents returns a warning about a directory on the way to the Tree to which
// everybody may write. With the sticky bit, as in /tmp, only owners can rename.
func (t Tree) checkParents() string {
	dir, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return ""
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err == nil && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Sprintf("%s: everybody may replace this directory, since everybody may write to %s (mode %v); run chmod o-w on that", t.dir, parent, info.Mode())
		}
		if parent == filepath.Dir(parent) {
			return ""
		}
	}
}

// GiveAway gives a file or directory that root has made to the owner of its
// directory: root may run a tool beside a gate of another user.
func GiveAway(path string) error {
	return giveAway(filepath.Dir(path), func(user, group int) error { return os.Lchown(path, user, group) })
}

// GiveAway is [GiveAway] for a file that is not in its place yet. In a [Tree] the
// owner of the Tree gets it.
func (f *File) GiveAway() error { return giveAway(f.placer.ownerDir(f.dir), f.Chown) }

func giveAway(dir string, chown func(user, group int) error) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return chown(int(owner.Uid), int(owner.Gid))
}

// checkOwner returns an error if a directory belongs to a user other than root and
// that of this process.
func checkOwner(info fs.FileInfo) error {
	owner, user := int(info.Sys().(*syscall.Stat_t).Uid), os.Geteuid()
	if owner == user || owner == 0 {
		return nil
	}
	return fmt.Errorf("%w (user ID %d, but this process has %d), who could replace the files in it: run chown -R to give it to the user of the gate, or run the gate as its owner",
		ErrOwner, owner, user)
}

// checkLinks returns an error if a file has several names and belongs to another
// user than its directory: the owner of the directory may have linked a file that
// he may not read or write.
func checkLinks(file, dir fs.FileInfo) error {
	f, d := file.Sys().(*syscall.Stat_t), dir.Sys().(*syscall.Stat_t)
	if f.Nlink > 1 && f.Uid != d.Uid {
		return errForeign
	}
	return nil
}
