// Package hashlab measures hash families: the false positive rates and other
// properties that they have with real keys, compared with the textbook's formula.
// [Run] measures, and a [Report] holds the numbers. Package summary says in
// sentences what they show; packages render and page write reports.
//
// # Subjects
//
// Families are compared in groups of equal k, and each of the eleven classic
// hashes alone, at k = 1. Every group has two controls: ideal hashes from a seeded
// generator, and k independent XXH3. A family that allows any k has k = 11; double
// also has k = 7, for comparison with weighted, which has seven seeds. The key of
// keyed families is fixed ([PublicKey]), so that everybody gets the same numbers.
// The control of ideal hashes has other functions in each filter.
//
// # Corpora
//
// The default ones are the shipped real list, and keys generated from the seed:
// addresses at one domain and at 20,000 domains, sequential numbers, random bytes,
// short domains; and the keysets sparse, permutation and differential, patterns of
// bits as SMHasher3 defines them, to find what names and numbers hide. [ReadCorpus]
// reads others. All keys of a corpus are different.
//
// # Avalanche and bit independence
//
// The mean bias of all pairs of an input and an output bit, the worst one, and the
// bit independence criterion are SMHasher3's Avalanche and BIC. Theirs are of random
// keys, and fail above fixed limits (Avalanche: a bias of 1% of the flips of 300,000
// keys). Ours are of each corpus's keys, cut to one length, which finds more: a hash
// may be good over random keys and not over names. The p-values are exact
// (binomial) for single bits, of χ² for pairs, and corrected for all bits, pairs,
// hashes and corpora.
//
// # False positive rates
//
// In the daemon's 2^28 bits the formula predicts a rate of 1e-26 for the real list,
// which cannot be measured. So m is scaled, and n with it: filters of 2^16 and 2^20
// bits (in the full run also 2^24; for a small corpus the largest power of two that
// it fills) get 1/4, 1/2, 3/4, all and 5/4 of their capacity, m·ln 2/k keys, if the
// corpus has enough keys. At the capacity half of the bits are set, and the
// formula's rate is 2^-k at any m.
//
// Scaling has an effect: an index is the hash modulo m, so that a small filter uses
// only a hash's low bits. A hash with bad low bits (PJW, DEK) is worse in a small
// filter than in one of 2^28 bits. The full run therefore also fills filters of
// 2^28 bits, with 10 and 16.9 million addresses, other ones in each.
//
// Each rate is from 20 random splits of the corpus (30 in the full run) into
// members and queries, which have no key in common. All subjects of a group use the
// same splits, so their rates compare best with each other. If a corpus is much
// larger than a filter needs, the laboratory uses a random part of it, at most
// three times the need.
//
// For the rate per message it looks up, in the same filters at the smallest m, all
// candidate keys of all identities of made-up messages of which no key is a member.
// Messages share keys such as "com" and "*.com", and such a key is a false positive
// for all of them or for none. So the rate per message varies from filter to filter
// much more than the rate per key, and may be lower than with as many independent
// keys. Corpora without domains, or with few, have no messages.
//
// The pass rate of an index function is the part of absent keys whose bit is set,
// in the family's filter at capacity.
//
// # Intervals
//
// With H hits in T trials the rate is r = H/T. Its limits are
//
//	r·e^(±t·s/r), where t is Student's for the number of filters less one
//
// of 95% confidence, by the logarithm so that none is below 0; or those of Clopper
// and Pearson for H in T, on each side whichever is wider. s is the standard error
// with two ways of clustering (Cameron, Gelbach and Miller, "Robust Inference With
// Multiway Clustering", 2011):
//
//	s² = F·Σ(h_f - r·t_f)²/((F-1)·T²) + Σ(h_q - r·t_q)²/T² - r(1-r)/T
//
// The first sum is over the F filters, with h_f hits in t_f trials each: the spread
// between the filters. The second is over the keys, with h_q hits in the t_q
// filters in which the key was looked up: a family has the same functions in all
// filters, and a key whose bits are crowded is often a false positive, so that 20
// filters are less than 20 independent samples. The last term is counted in both
// sums; if the second sum is not larger than it, the first stands alone. For double
// hashing under many keys, the interval contains the formula's rate about as often
// as it promises (a test checks it); the spread between the filters alone contains
// it less often.
//
// Without hits there is only an upper bound, of 95% on its one side. It assumes
// independent trials, since without hits there is no spread.
//
// No interval here covers another corpus. Splits of one corpus are not independent
// samples of all corpora, and for classic hashes corpora differ by more than the
// intervals' width. Intervals are of one row each: of a hundred rows some five will
// miss, and rows of the same filters at several loads miss together. Of rates per
// message a few more miss, since 20 filters show too little of the effect of a key
// that most messages have. If a row can expect fewer than some ten hits, its limits
// are wider than necessary.
//
// # The effective k
//
// ln r / ln fill, where fill is the mean part of set bits: the k at which ideal
// functions would have the measured rate in a filter as full. Its limits come from
// the rate's. Without hits it has only a lower limit. A family that sets fewer bits
// than the formula says (two functions that are one) has two losses: a smaller
// effective k, and functions that cost time and do nothing.
//
// # As the formula says
//
// [Equivalences] tells whether a subject's rates are the formula's within 5%, by two
// one-sided tests: an interval that merely contains the formula's rate shows only
// that no difference was found.
//
// # Repeating a run
//
// All random choices depend on the seed and on their purpose, none on the time or
// the order of the work: the same manifest gives the same numbers on any number of
// cores, speeds excepted. The report of an interrupted run has the rows that were
// complete.
package hashlab
