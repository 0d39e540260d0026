// Package hashfamily turns string hashes into the index functions of a Bloom
// filter: eleven classic hashes, well-known recipes, and modern hashes.
//
// A [Family] is k index functions over m bits. [ParseSpec] parses its name, as in a
// configuration, and [Spec.New] makes it; [NewClassic] and the like make one family
// directly.
//
//	classic    the eleven classic hashes, or some of them
//	classic9   nine of them
//	weighted   h = seed·h + c under seven seeds, or others
//	digest     one MD5, divided repeatedly by m; k from 1 to 64
//	double     HighwayHash-128 under a secret key, or MurmurHash3-128, of which three
//	           parts make all indices; k from 1 to 64
//	seeded     XXH3-64 with a seed, of which three parts make all indices; k from 1
//	           to 15
//
// The comments of [Classic], [Weighted], [Digest], [Double] and [Seeded] give the
// formula, its source, its strengths and its weaknesses. Only "double" with a secret
// key resists an attacker who chooses keys.
//
// # The classic hashes
//
// The classic family consists of eleven short, fast, non-cryptographic hashes from
// Arash Partow's "General Purpose Hash Function Algorithms" library (2002): RS, JS,
// PJW, ELF, BKDR, SDBM, DJB, DEK, BP, FNV and AP, in this order. All compute in
// unsigned 32-bit arithmetic that wraps around, and take each byte of the key as a
// number from 0 to 255. The original C functions, compiled where char is signed, give
// other hashes for keys with bytes from 0x80 on, and so other bits in a shared bitmap:
// compile them with -funsigned-char. A nil key is the empty key. An index is the hash modulo m.
//
// # What the classic family is not
//
// None of the eleven resists an attacker who chooses keys: colliding keys are easy to
// make for each of them. And they are not eleven independent functions:
//
//   - [PJW] and [ELF] are the same function in 32 bits.
//   - [BP] depends only on the last four bytes if m is 2^28, so it is constant for
//     all names that end in ".com".
//   - [RS], [BKDR], [SDBM], [DJB] and [FNV] multiply by odd numbers only, so their
//     lowest bit is the parity of the key's bytes (DJB's is the complement).
//
// So a filter over the classic family behaves as if it had nine functions at best, and
// fewer with keys that resemble each other; see package bloom for the cost. The family
// classic9 has all but ELF and BP.
package hashfamily
