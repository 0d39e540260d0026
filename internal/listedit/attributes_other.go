//go:build !linux

package listedit

import (
	"io/fs"
	"os"
	"time"
)

func keepExtended(_, _ *os.File) error { return nil }

func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
