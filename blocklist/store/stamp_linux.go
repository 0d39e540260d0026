package store

import (
	"io/fs"
	"syscall"
)

func attributesOf(info fs.FileInfo) attributes {
	a := attributes{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	a.Change = a.Modified
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		a.Device, a.Inode = uint64(st.Dev), st.Ino
		a.Change = st.Ctim.Nano()
	}
	return a
}
