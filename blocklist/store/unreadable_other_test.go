//go:build !linux

package store

import (
	"os"
	"testing"
)

// asStranger runs f without root's right to read everything.
func asStranger(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("root may read every file")
	}
	f()
}
