package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// PlainFlagError replaces the error about an invalid flag value by one that says what the flag
// expects. It returns other errors unchanged.
func PlainFlagError(command string, err error) error {
	invalid := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &invalid) {
		return err
	}
	want := ""
	switch invalid.GetFlag().Value.Type() {
	case "uint64":
		want = "a whole number from 0 to 18446744073709551615"
	case "bool":
		want = "true or false"
	default:
		return err
	}
	return fmt.Errorf("%s: --%s %s: want %s", command, invalid.GetFlag().Name, strconv.Quote(invalid.GetValue()), want)
}
