package listedit

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when anything about the file was last changed. Programs set the
// modification time back; nothing sets this one.
func changeTime(info fs.FileInfo) time.Time {
	return time.Unix(info.Sys().(*syscall.Stat_t).Ctim.Unix())
}
