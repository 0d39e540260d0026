// Package bloom provides Bloom filters, and the mathematics of their m bits, n
// entries, k index functions, fill ratio and false positive rate (FPR).
//
// A Bloom filter answers whether a key was added with "certainly not" or "maybe".
// There are no false negatives. The caller detects false positives with an exact
// index.
//
// The classic filter has [ClassicBits] = 2^28 bits, 32 MiB for any number of
// entries, and the eleven hashes of hashfamily's classic family. Its bitmap is
// fixed to the bit: index = hash mod 2^28, and bit i is bit i mod 8, least
// significant first, of byte i/8. [Filter] works the same for any other family and
// m.
//
// [Counting] is a filter from which keys can be removed, and [Sieve] a queue that
// takes each key only once. [Sharded] has as many bitmaps as any number of keys
// needs, and [Fuse] is a smaller filter that never changes.
//
// The union of two filters of one family and size has the bits of both. So the bits
// of each of several lists can be stored ([WriteListBits]), and a filter of all
// lists is made of the stored bits ([Sharded.Unite]) without reading a key.
//
// # Rates of the classic filter
//
// The textbook's formula ([FPR]) assumes k independent functions. The eleven of the
// classic family act like nine at best: PJW and ELF are the same function, and BP
// modulo 2^28 depends only on the last four bytes of a key, so it is constant for
// names under .com. Therefore
//
//   - fewer bits are set than the formula expects: [Filter.FillRatio] is lower;
//   - a false positive needs nine random bits to be set, not eleven: [Filter.FPR],
//     which is fill^11, is too low by a power of ten or more.
//
// Measured with made-up addresses as entries and lookups of 20 million others:
//
//	n             fill    formula   fill^11   fill^9    measured
//	10 million    0.284   6.2e-6    9.7e-7    1.2e-5    1.4e-5
//	16.9 million  0.431   4.9e-4    9.5e-5    5.1e-4    5.8e-4
//
// (go test -run - -bench FalsePositives -benchtime 20000000x; bench/filters/run
// counts them with another generator's addresses.)
//
// With keys that resemble each other, such as numbered names, fewer than nine act
// independently. Their hashes differ in a regular way, so that fewer bits are set,
// and absent keys of the same kind meet those bits more often. fill^9 is then many
// times too low: TestShownRateHolds of package blocklist measures six kinds of keys,
// such as user00000001@example.com. [Filter.ExpectedFPR] does not fall with the fill
// ratio. It is still a lower bound for such keys, and
// package blocklist probes a live filter with changed entries of its lists.
//
// None of this holds against an attacker who chooses addresses that collide: the
// hashes are easy to fool.
package bloom
