package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one fault of a configuration file. Load joins all of them
// (errors.Join), in the order of the file.
type Error struct {
	// File is the path as it was given to Load.
	File string

	// Line and Column count from 1; both are 0 where the fault is in no one
	// place, such as a list that is nowhere.
	Line, Column int

	// Key is the full name of the key, "listen.addr"; empty for a fault of
	// the TOML itself.
	Key string

	// What is wrong, and Hint: what to do about it.
	What, Hint string
}

// Error is "file:line:column: key: what; hint" without the parts that are
// empty.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.What)
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Fault returns an error about the value of a key that only shows when the value is
// used, such as a file that cannot be opened. It looks up where the key is now.
func (c *Config) Fault(key, what, hint string) *Error {
	fault := &Error{File: c.File, Key: key, What: what, Hint: hint}
	if src, err := readFile(c.File); err == nil {
		fault.Line, fault.Column = index(bytes.TrimPrefix(src, []byte(byteOrderMark))).find(key)
	}
	return fault
}

// join makes one error of many, or nil of none.
func join(faults []*Error) error {
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}
