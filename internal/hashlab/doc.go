// Package hashlab measures hash families: what a Bloom filter's textbook
// promises of them, and what real keys get. [Run] measures, and a [Report] holds
// what it found; the rest of the package writes reports.
//
// # Subjects
//
// Families are compared in groups of equal k, and each of the eleven classic
// hashes alone, at k = 1. In every group stand two controls: ideal hashes from a
// seeded generator, and k independent XXH3. A family that is free to choose has
// k = 11; double stands beside weighted, which has seven seeds, with k = 7 as
// well. The key of keyed families is fixed ([PublicKey]), so that everybody gets
// the same numbers. The controls of ideal hashes are other ones in each filter.
//
// # Corpora
//
// The default ones are the shipped real list, and keys generated from the seed:
// addresses at one domain and at 20,000 domains, numbers in a row, random bytes,
// short domains. [ReadCorpus] reads others. All keys of a corpus are different.
//
// # False positive rates
//
// A rate of 1e-26, which the textbook foretells for the real list in the daemon's
// 2^28 bits, can't be measured. So m is scaled, and n with it: filters of 2^16
// and 2^20 bits (2^24 in the full run; for a small corpus the largest power of
// two that it fills) are filled to 1/4, 1/2, 3/4, all and 5/4 of their capacity,
// m·ln 2/k keys, as far as the corpus has the keys. At the capacity half of the
// bits are set, and the formula's rate is 2^-k at any m.
//
// What scaling changes: an index is the hash modulo m, so a small filter sees a
// hash's low bits only. A hash that is bad in its low bits (PJW, DEK) is worse
// in a small filter than in one of 2^28 bits. The full run therefore also fills
// filters of 2^28 bits, with 10 and 16.9 million addresses, other ones in each.
//
// Each rate is from 20 random splits of the corpus (30 in the full run) into
// members and queries, which have no key in common. All subjects of a group get
// the same splits, and their rates are best compared with each other. Where a
// corpus is much larger than a filter needs, a random part of it is used, at
// most three times the need.
//
// The rate per message asks the same filters, at the smallest m, for all
// candidate keys of all identities of made-up messages of which no key is a
// member. Messages share keys such as "com" and "*.com", and such a key is a
// false positive for all of them or for none: the rate per message differs much
// more from filter to filter than the rate per key does, and may lie below what
// as many independent keys would give. Corpora without domains, or with few,
// have no messages.
//
// The pass rate of an index function is the part of absent keys whose bit it
// finds set, in the family's filter at capacity.
//
// # Intervals
//
// With H hits in T trials the rate is r = H/T. Its limits are
//
//	r·e^(±t·s/r), where t is Student's for the number of filters less one
//
// of 95% confidence, taken of the logarithm so that none falls below 0; or those
// of Clopper and Pearson for H in T, on each side whichever is wider. s is the
// standard error with two ways of clustering (Cameron, Gelbach and Miller,
// "Robust Inference With Multiway Clustering", 2011):
//
//	s² = F·Σ(h_f - r·t_f)²/((F-1)·T²) + Σ(h_q - r·t_q)²/T² - r(1-r)/T
//
// The first sum is over the F filters, with h_f hits in t_f trials each. It is
// the spread between the filters. The second is over the keys, with h_q hits in
// the t_q filters that were asked for the key: a family's functions are the same
// in all filters, and a key whose bits are crowded is a false positive again and
// again, so that 20 filters are less than 20 independent samples. The last term
// is what both sums count twice; without the second sum being larger than it the
// first stands alone. Measured on double hashing under many keys, the interval
// has the formula's rate about as often as it promises (a test holds it to
// that), and the spread between the filters alone has it less often.
//
// With no hits there is only an upper bound, of 95% on its one side. It takes the
// trials for independent: no spread can be seen where nothing was hit.
//
// What no interval here covers: another corpus. Splits of one corpus are not
// independent samples of all corpora, and classic hashes differ from corpus to
// corpus by more than the intervals' width. Intervals are of one row each: of a
// hundred rows some five will miss, and rows of the same filters at several loads
// miss together. Of rates per message a few more miss, since 20 filters show too
// little of what a key does that most messages have. Where a row can expect less
// than some ten hits its limits are wider than they need be.
//
// # The effective k
//
// ln r / ln fill, where fill is the mean part of set bits: the k at which ideal
// functions would have the measured rate in a filter as full. Its limits come
// from the rate's. With no hits it has a lower limit alone. A family that sets
// fewer bits than the formula says (two functions that are one) loses twice: by
// its effective k, and by the part of k that it pays for nothing.
//
// # Repeating a run
//
// All random choices come from the seed and from what they are for, none from
// the time or the order of the work: the same manifest gives the same numbers on
// any number of cores, the speeds excepted. A run that was interrupted holds
// what was done until then, and each row that it holds is whole.
package hashlab
