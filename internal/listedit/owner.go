package listedit

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// keepAttributes copies owner, mode and extended attributes to replacement.
func keepAttributes(old *os.File, info fs.FileInfo, replacement *os.File) error {
	want := info.Sys().(*syscall.Stat_t)
	current, err := replacement.Stat()
	if err != nil {
		return err
	}
	if got := current.Sys().(*syscall.Stat_t); got.Uid != want.Uid || got.Gid != want.Gid {
		if err := replacement.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return fmt.Errorf("%w: it belongs to %s; run this as root (sudo) or as that user", ErrOwner, owner(want))
		}
	}
	// After the owner, since changing that clears mode bits; and before the access
	// control list, which refines the mode.
	if err := replacement.Chmod(info.Mode()); err != nil {
		return fmt.Errorf("%w: its mode: %w", ErrOwner, err)
	}
	return keepExtended(old, replacement)
}

// owner returns "user gate, group mail", or numbers where they have no names.
func owner(st *syscall.Stat_t) string {
	uid, gid := strconv.Itoa(int(st.Uid)), strconv.Itoa(int(st.Gid))
	if u, err := user.LookupId(uid); err == nil {
		uid = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		gid = g.Name
	}
	return fmt.Sprintf("user %s, group %s", uid, gid)
}

// names returns the number of names (hard links) of the file.
func names(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
