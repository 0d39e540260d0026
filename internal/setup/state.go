package setup

import (
	"errors"
	"fmt"

	"spamgate/internal/config"
	"spamgate/internal/durable"
)

// CheckState refuses a state directory that other users can write to: they could replace the
// indexes and the key, and so decide which mail passes. The warning is about doubtful cases.
// Serving means that this process is the gate; commands, run by root above all, may use a
// directory of the gate's user.
func CheckState(c *config.Config, serving bool) (warning string, err error) {
	warning, err = durable.In(c.State.Dir).Check()
	if errors.Is(err, durable.ErrOwner) && !serving {
		return "", nil
	}
	if err != nil && (errors.Is(err, durable.ErrShared) || errors.Is(err, durable.ErrOwner)) {
		return "", fmt.Errorf("[state] dir: %w", err)
	}
	return warning, nil // other faults show when it is used
}
