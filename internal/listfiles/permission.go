package listfiles

import (
	"errors"
	"io/fs"
)

// permissionError is an error for want of permission that says who has it.
type permissionError struct {
	err error
	who string
}

func (e *permissionError) Error() string { return e.err.Error() + "; run this as " + e.who }

func (e *permissionError) Unwrap() error { return e.err }

// Who may read and write what a command has to.
const (
	WhoServes = "root (sudo) or as the user that the gate runs as"
	WhoOwns   = "root (sudo) or as the owner of the list"
)

// WithAuthority adds to an error for want of permission who has it, once.
func WithAuthority(err error, who string) error {
	var text *permissionError
	if !errors.Is(err, fs.ErrPermission) || errors.As(err, &text) {
		return err
	}
	return &permissionError{err, who}
}
