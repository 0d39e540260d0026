// Package hits remembers which entries of the lists have matched, and on what day
// last, so that entries that never do can be found.
//
// A [Log] is told of each match while mail is judged; it writes what it knows to a
// file for each list now and then, and [Read] reads such a file without a Log.
// Entries are known by the hash of their key, as package segment has it, and days
// are those of UTC.
//
// Memory and files are bounded: of more than so many entries those are forgotten
// that have not matched for longest. A Log knows which day that leaves it certain
// of ([Snapshot.Known]): whoever asks about the time since a later day gets the
// whole truth.
package hits
