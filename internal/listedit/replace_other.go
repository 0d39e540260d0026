//go:build !linux

package listedit

import (
	"errors"
	"os"
)

func createReplacement(target string) (*replacement, error) { return createNamed(target) }

func link(*os.File, string) error { return errors.ErrUnsupported }

func keepExtended(_, _ *os.File) error { return nil }
