package hashes

import (
	"errors"
)

var errBroken = errors.New("broken")

type brokenIO struct{}

func (brokenIO) Read([]byte) (int, error) { return 0, errBroken }

func (brokenIO) Write([]byte) (int, error) { return 0, errBroken }
