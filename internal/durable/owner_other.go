//go:build !unix

package durable

import "io/fs"

// sharedModes says that modes tell nothing where files have no owners as on Unix.
const sharedModes = false

// GiveAway does nothing where files have no owners as on Unix.
func GiveAway(string) error { return nil }

// GiveAway does nothing, as the function.
func (f *File) GiveAway() error { return nil }

func giveAway(string, func(user, group int) error) error { return nil }

func ownerOf(fs.FileInfo) error { return nil }

func foreign(_, _ fs.FileInfo) error { return nil }
