//go:build !unix

package durable

import "os"

// SyncDir does nothing: this system has no such call.
func SyncDir(string) error { return nil }

func syncDir(*os.File) error { return nil }
