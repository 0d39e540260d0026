// Package hits records on what day each entry of the lists last matched, so that unused
// entries can be found.
//
// A [Log] records each match while mail is judged, and regularly writes a file for each
// list. [Read] reads such a file without a Log. Entries are identified by the hash of
// their key, as in package segment. Days are in UTC.
//
// Memory and files are bounded: if there are too many entries, those are dropped whose
// last match is oldest. [Snapshot.Known] returns the first day since which all matches
// are known.
package hits
