package store

import (
	"io/fs"
	"syscall"
)

func attributesOf(info fs.FileInfo) attributes {
	a := attributes{size: info.Size(), modified: info.ModTime().UnixNano()}
	a.change = a.modified
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		a.device, a.inode = uint64(st.Dev), st.Ino
		a.change = st.Ctim.Nano()
	}
	return a
}
