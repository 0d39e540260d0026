//go:build unix

package fetch

import (
	"os"
	"syscall"
)

// ownAsDir gives a file that root has made to the owner of a directory: the gate,
// which runs as another user, has to replace the copy that root fetched.
func ownAsDir(file *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	return file.Chown(int(owner.Uid), int(owner.Gid))
}
