package setup

import (
	"errors"
	"fmt"

	"spamgate/internal/config"
	"spamgate/internal/durable"
)

// CheckState refuses a state directory that others than its owner decide about: who
// can replace the indexes and the key in it says what mail passes. The warning is
// about what is less clear. Serving says whether this process is the gate: others, a
// command of root's above all, may use a directory of the gate's user.
func CheckState(c *config.Config, serving bool) (warning string, err error) {
	warning, err = durable.In(c.State.Dir).Check()
	if errors.Is(err, durable.ErrOwner) && !serving {
		return "", nil
	}
	if err != nil && (errors.Is(err, durable.ErrShared) || errors.Is(err, durable.ErrOwner)) {
		return "", fmt.Errorf("[state] dir: %w", err)
	}
	return warning, nil // what else is wrong shows when it is used
}
