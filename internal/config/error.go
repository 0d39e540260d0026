package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/internal/text"
)

// Error is one fault of a configuration file. Load joins them (errors.Join) in the
// order of the file.
type Error struct {
	// File is the path as it was given to Load.
	File string

	// Line and Column count from 1; both are 0 if the fault has no place, such as a
	// missing list.
	Line, Column int

	// Key is the full name of the key, "listen.addr"; empty for a fault of
	// the TOML itself.
	Key string

	// What says what is wrong, and Hint what to do.
	What, Hint string
}

// Error returns "file:line:column: key: what; hint" without the parts that are
// empty, and without the passwords and tokens of URLs.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Place() + ": ")
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(text.HideSecrets(e.What))
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(text.HideSecrets(e.Hint))
	}
	return b.String()
}

// Place returns "file:line:column", or the file alone.
func (e *Error) Place() string {
	if e.Line == 0 {
		return e.File
	}
	return fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
}

// Fault returns an error about the value of a key that appears only when the value
// is used, such as a file that cannot be opened. It reads the file again for the
// position of the key: a path such as "log.output", or one from ListKey,
// ListenerKey or Hop.AddrKey.
func (c *Config) Fault(key, what, hint string) *Error {
	fault := &Error{File: c.File, Key: display(key), What: what, Hint: hint}
	if at, err := c.positions(); err == nil {
		fault.Line, fault.Column = at.find(key)
	}
	return fault
}

// positions reads the file again.
func (c *Config) positions() (positions, error) {
	src, err := readFile(c.File)
	return index(bytes.TrimPrefix(src, []byte(byteOrderMark))).at, err
}

// ListKey returns the path of a key of Lists[i].
func (c *Config) ListKey(i int, key string) string { return element("list", i) + "." + key }

// ListenerKey returns the path of a key of Listeners[i]: in its own table or, if
// that does not set the key, in [listen].
func (c *Config) ListenerKey(i int, key string) string {
	i = c.tableOf(i)
	own := element("listener", i) + "." + key
	if i < 0 {
		return "listen." + key
	}
	if at, err := c.positions(); err == nil && !at.has(own) {
		return "listen." + key
	}
	return own
}

// tableOf returns the index of the [[listener]] table of Listeners[i], -1 for [listen].
func (c *Config) tableOf(i int) int {
	if len(c.Listen.Addr) > 0 {
		i-- // [listen] is the first of them
	}
	return i
}

// inOrder sorts faults in the order of the file.
func inOrder(faults []*Error) []*Error {
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}

// Join makes one error of many, in the order of the file, or nil of none.
func Join(faults []*Error) error {
	inOrder(faults)
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}
