// Package state proves that the state directory keeps a start fast and safe: gates that
// are killed at any moment, that share a directory, whose disk is full or read-only, or
// whose directory was removed lose nothing that was stored and serve the lists; and a
// directory that others may write to, or that holds traps, does no harm.
package state
