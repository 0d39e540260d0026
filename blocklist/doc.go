// Package blocklist answers whether a sender is listed, and why.
//
// A [Set] is one state of all lists, immutable. It looks a sender's candidate
// keys up in a Bloom filter over the keys of every list; "no" is certain and
// ends the matter for almost all mail. A "maybe" is confirmed against each
// list's exact index, which knows file, line and reason, so that a false
// positive of the filter turns nobody away: it is counted. [Set.Lookup] then
// weighs the lists' matches against each other, see [Decision]. A [View] does the
// same with some of the lists.
//
// A [Store] keeps a Set up to date with the files on disk. It holds the present
// Set in one atomic pointer and replaces it whole: a lookup sees the old state
// or the new one, never a mixture. What fails to load, or looks wrong, keeps the
// last good version of its own list; every other change goes live.
//
// [Build] loads once, without watching.
package blocklist
