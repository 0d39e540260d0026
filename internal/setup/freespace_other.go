//go:build !linux

package setup

import "os"

// freeSpace returns -1: the system calls for it differ.
func freeSpace(*os.File) int64 { return -1 }
