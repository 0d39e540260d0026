//go:build unix

package durable

import (
	"os"
	"path/filepath"
	"syscall"
)

// GiveAway gives what root has made to whom the directory belongs that it is in:
// root may run a tool beside a gate that is not root.
func GiveAway(path string) error {
	return giveAway(filepath.Dir(path), func(user, group int) error { return os.Lchown(path, user, group) })
}

// GiveAway is [GiveAway] for a file that is not in its place yet.
func (f *File) GiveAway() error { return giveAway(f.dir, f.Chown) }

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
