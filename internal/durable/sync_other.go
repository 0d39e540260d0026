//go:build !unix

package durable

// SyncDir does nothing: this system has no such call.
func SyncDir(string) error { return nil }
