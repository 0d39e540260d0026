// Package bloom holds Bloom filters, and the mathematics of their m bits, n
// entries, k index functions, fill ratio and false positive rate (FPR).
//
// A Bloom filter answers whether a key was added with "certainly not" or
// "maybe". There are no false negatives. A false positive has to be sorted out
// by whoever asks, with an exact index.
//
// The classic filter has [ClassicBits] = 2^28 bits, 32 MiB however many the
// entries, and the eleven hashes of hashfamily's classic family. Its bitmap is
// fixed to the bit: index = hash mod 2^28, and bit i is bit i mod 8, least
// significant first, of byte i/8. [Filter] works for any other family and m just
// the same.
//
// [Counting] is a filter from which keys can be removed, and [Sieve] a queue that
// takes each key the first time only. [Sharded] is as many bitmaps as any number
// of keys needs, and [Fuse] a smaller filter that is never changed.
//
// Filters of one family and size are united by setting the bits of both. So what
// each of several lists adds is stored as a [Part] ([WritePart]), and a filter of
// all is made of the parts ([Sharded.Unite]) without looking at a key.
//
// # Rates of the classic filter
//
// The textbook's formula ([FPR]) supposes k independent functions. The classic
// family has eleven functions that act like nine: PJW and ELF are the same
// function, and BP modulo 2^28 sees the last four bytes of a key alone, so that
// for names under .com it is constant. So
//
//   - fewer bits get set than the formula expects: [Filter.FillRatio] is lower,
//     and [Filter.EstimatedEntries] too low by about 18%;
//   - a random bit has to be set not eleven but nine times for a false positive:
//     [Filter.FPR], which is fill^11, is a lower bound, and too low by a power of
//     ten; fill^9 ([Filter.ExpectedFPR]) comes close.
//
// Measured with made-up addresses as entries and 20 million others looked up:
//
//	n             fill    formula   fill^11   fill^9    measured
//	10 million    0.284   6.2e-6    9.7e-7    1.2e-5    1.4e-5
//	16.9 million  0.431   4.9e-4    9.5e-5    5.1e-4    5.8e-4
//
// (go test -run - -bench FalsePositives -benchtime 20000000x; bench/filters/run
// counts them among the addresses of another generator.) A few hundred thousand
// entries leave either rate so small that it hardly matters.
//
// None of this holds against somebody who makes up addresses to collide: the
// hashes are easy to fool.
package bloom
