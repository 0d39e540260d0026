// Package store reads lists from files, and keeps what it has read up to date.
//
// A [Store] keeps a [blocklist.Set] up to date with the files on disk. It holds the
// present Set in one atomic pointer and replaces it whole: a lookup sees the old
// state or the new one, never a mixture. What fails to load, or looks wrong, keeps the
// last good version of its own list; every other change goes live.
//
// # Indexes, and what is kept of them
//
// A list's exact index is a file that is mapped into memory (package segment).
// With a state directory ([Config.StateDir]) it stays there, with what else is
// known of the list:
//
//	lists.key                 secret that all hashes and digests are keyed with
//	work/                     what is being built, a directory for each process
//	lists/NAME/current.seg    the index that serves, and what it was made of
//	lists/NAME/current.json   how its files looked when they were last seen
//	lists/NAME/current.bits   the list's part of the filter
//	lists/NAME/building       that they are being read: see [ErrKilled]
//	lists/NAME/accepted       contents that may look wrong, see [AcceptContent]
//	lists/NAME/history/       earlier versions of its files, see [Versions]
//
// A start maps the index of a list whose files are as they were last seen, and
// reads nothing. (Files that were changed less than two seconds before that are
// read once more, to compare their digests.) A list that fails at the start, or
// looks wrong, serves what is stored. Everything is replaced by renaming, so that
// whatever interrupts a process leaves a whole index; an index that is damaged is
// noticed when it is opened, or by the first lookup that meets the damage. That
// lookup is an error, and the list is read again.
//
// Without a state directory, or if it cannot be used, each start reads the lists.
// Everything else works the same.
//
// # What looks wrong
//
// A change that looks wrong is held ([ErrHeld]): a list that was emptied, has many
// invalid lines, lost many entries or became much larger, has an overlong line, or an
// entry that covers a protected name. [Store.Accept] and AcceptContent accept a list
// for its number of entries or an overlong line. Any other problem must be corrected
// in the list or the configuration.
//
// [Build] loads once, without watching.
package store
