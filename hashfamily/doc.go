// Package hashfamily turns string hashes into the index functions of a Bloom
// filter: eleven classic hashes, recipes that books and programs pass on, and
// today's hashes.
//
// A [Family] is k index functions over m bits. [ParseSpec] reads its name, as a
// configuration writes it, and [Spec.New] makes it; [NewClassic] and its like do
// the same for a program that knows what it wants.
//
//	classic    the eleven classic hashes, or some of them
//	classic9   nine of them
//	weighted   h = seed·h + c under seven seeds, or others
//	digest     one MD5, divided by m again and again; k from 1 to 64
//	double     HighwayHash-128 under a secret key, or MurmurHash3-128, whose two
//	           halves make all indices; k from 1 to 64
//	seeded     XXH3-64 with a seed, whose two halves make all indices; k from 1 to 15
//
// The comments of [Classic], [Weighted], [Digest], [Double] and [Seeded] have the
// formula, its source, its strengths and its weaknesses. Only "double" under a key
// that is secret holds against someone who chooses keys on purpose.
//
// # The classic hashes
//
// Eleven short, fast, non-cryptographic hashes were collected by Arash Partow
// in his "General Purpose Hash Function Algorithms" library (2002). Together
// they are the classic family: RS, JS, PJW, ELF, BKDR, SDBM, DJB, DEK, BP, FNV
// and AP, in this order. All compute in unsigned 32-bit arithmetic that wraps
// around, and take each byte of the key as a number from 0 to 255 (C code that
// runs them over signed char differs for bytes from 0x80 on). A nil key is the
// empty key. An index is the hash modulo m.
//
// # What the classic family is not
//
// None of the eleven is a defence against someone who chooses keys on purpose:
// colliding keys are easy to make for every one of them. And they are not
// eleven independent functions:
//
//   - [PJW] and [ELF] are the same function in 32 bits.
//   - [BP] depends on the last four bytes alone when m is 2^28, so it is one
//     constant for all names that end in ".com".
//   - [RS], [BKDR], [SDBM], [DJB] and [FNV] multiply by odd numbers only, so
//     that their lowest bit is the same parity of the key's bytes (DJB's is the
//     complement).
//
// A filter over the classic family therefore behaves as if it had about nine
// functions. Package bloom says what that costs. The family classic9 leaves ELF
// and BP out, and has the other nine.
package hashfamily
