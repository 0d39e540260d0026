package setup

import (
	"errors"
	"fmt"

	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
)

// CheckState refuses a state directory that other users can write to: they could replace the
// indexes and the key, and so decide which mail passes. The warning is about doubtful cases.
// Serving means that this process is the gate; commands, run by root above all, may use a
// directory of the gate's user.
func CheckState(c *config.Config, serving bool) (warning string, err error) {
	warning, err = atomicfile.In(c.State.Dir).Check()
	if errors.Is(err, atomicfile.ErrOwner) && !serving {
		return "", nil
	}
	if err != nil && (errors.Is(err, atomicfile.ErrShared) || errors.Is(err, atomicfile.ErrOwner)) {
		return "", fmt.Errorf("[state] dir: %w", err)
	}
	return warning, nil // other faults show when it is used
}
