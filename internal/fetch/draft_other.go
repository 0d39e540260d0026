//go:build !linux

package fetch

import "os"

func createDraft(dir string) (file *os.File, name string, err error) { return createNamed(dir) }

// link is never asked for: all files have names.
func link(*os.File, string) error { return os.ErrInvalid }
