package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/text"
	"spamgate/internal/words"
)

// DurationFlag adds a flag for a duration.
func DurationFlag(cmd *cobra.Command, name string, value time.Duration, usage string) *time.Duration {
	f := &NumberFlag[time.Duration]{Value: value, Text: text.Duration(value), Name: "TIME", Parse: func(s string) (time.Duration, error) {
		d, ok := words.ParseDuration(s)
		if !ok {
			return 0, errors.New("write a duration such as 90s, 5m or 1h")
		}
		return d, nil
	}}
	cmd.Flags().Var(f, name, usage)
	return &f.Value
}

// NumberFlag is a flag whose value Parse parses. Text is what was typed, "" if the flag was not
// given.
type NumberFlag[T any] struct {
	Value T
	Text  string
	Name  string // of the value in the help
	Parse func(string) (T, error)
}

// Set parses a value.
func (f *NumberFlag[T]) Set(s string) error {
	value, err := f.Parse(s)
	if err != nil {
		return err
	}
	f.Value, f.Text = value, s
	return nil
}

// String returns the text as it was typed.
func (f *NumberFlag[T]) String() string { return f.Text }

// Type returns the name of the value in the help.
func (f *NumberFlag[T]) Type() string { return f.Name }
