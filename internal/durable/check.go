package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOwner is said of a directory that belongs to somebody who is neither root nor
// the user of this process. Use errors.Is.
var ErrOwner = errors.New("this directory belongs to another user")

// Check says whether the directory is fit to be used by a process for years, such as
// the state directory by a gate. The error is an [ErrShared] or an [ErrOwner]: in both
// cases somebody else could replace each file. A warning, empty if there is none, is
// about a group that may do so, which somebody may have wanted, or a directory above
// in which everybody may put another one in its place. One that is missing is fit.
func (t Tree) Check() (warning string, err error) {
	root, info, err := t.open()
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	root.Close()
	if err := ownerOf(info); err != nil {
		return "", t.failed("use", ".", err)
	}
	if sharedModes && info.Mode().Perm()&0o020 != 0 {
		return fmt.Sprintf("%s: its group may write to this directory (mode %v), and so can decide which mail passes; run chmod g-w on it, unless you want this", t.dir, info.Mode()), nil
	}
	return t.checkAbove(), nil
}

// checkAbove is the warning about a directory on the way to the Tree that everybody
// may write to. Where it has the sticky bit, as /tmp, they cannot rename what is not
// theirs.
func (t Tree) checkAbove() string {
	dir, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return ""
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err == nil && sharedModes && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Sprintf("%s: everybody may put another directory in its place, since everybody may write to %s (mode %v): chmod o-w that", t.dir, above, info.Mode())
		}
		if above == filepath.Dir(above) {
			return ""
		}
	}
}
