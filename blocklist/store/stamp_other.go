//go:build !linux

package store

import "io/fs"

// attributesOf makes do with what every system tells.
func attributesOf(info fs.FileInfo) attributes {
	modified := info.ModTime().UnixNano()
	return attributes{Size: info.Size(), Modified: modified, Change: modified}
}
