//go:build unix

package durable

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// sharedModes says that the mode of a directory tells who may write to it.
const sharedModes = true

// GiveAway gives what root has made to whom the directory belongs that it is in:
// root may run a tool beside a gate that is not root.
func GiveAway(path string) error {
	return giveAway(filepath.Dir(path), func(user, group int) error { return os.Lchown(path, user, group) })
}

// GiveAway is [GiveAway] for a file that is not in its place yet. In a [Tree] it
// goes to whom the Tree belongs to.
func (f *File) GiveAway() error { return giveAway(f.at.owned(f.dir), f.Chown) }

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

// ownerOf is the error of a directory that belongs to another user than this process's
// or root.
func ownerOf(info fs.FileInfo) error {
	owner, user := int(info.Sys().(*syscall.Stat_t).Uid), os.Geteuid()
	if owner == user || owner == 0 {
		return nil
	}
	return fmt.Errorf("%w (user ID %d, and this process has %d), who could replace what is in it: chown -R it to the user who runs the gate, or run the gate as its owner",
		ErrOwner, owner, user)
}

// foreign is the error of a file that has other names too, and is not that of the
// directory's owner: he need not have had the right to read it or write to it.
func foreign(file, dir fs.FileInfo) error {
	f, d := file.Sys().(*syscall.Stat_t), dir.Sys().(*syscall.Stat_t)
	if f.Nlink > 1 && f.Uid != d.Uid {
		return errForeign
	}
	return nil
}
