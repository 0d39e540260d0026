// Package blocklist answers whether a sender is listed, and why.
//
// A [Set] is one state of all lists, immutable. It looks a sender's candidate
// keys up in a Bloom filter over the keys of every list. "No" is certain, and ends
// the lookup for almost all mail. A "maybe" is confirmed against each list's exact
// index, which knows file, line and reason. So a false positive of the filter
// refuses nobody: it is counted. [Set.Lookup] then weighs the lists' matches
// against each other, see [verdict.Verdict]. A [View] does the same with some of
// the lists.
//
// [NewSet] makes a Set of indexes. Package store reads them from list files, and
// keeps a Set up to date with those.
package blocklist
