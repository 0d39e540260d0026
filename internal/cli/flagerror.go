package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// PlainFlagError says what a flag of a command wants where its value is none,
// in place of the words of the function that could not read it. Other errors
// are left as they are.
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
