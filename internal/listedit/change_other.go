//go:build !linux

package listedit

import (
	"io/fs"
	"time"
)

func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
