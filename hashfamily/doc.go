// Package hashfamily holds the classic string hashes and turns them into the
// index functions of a Bloom filter.
//
// Eleven short, fast, non-cryptographic hashes were collected by Arash Partow
// in his "General Purpose Hash Function Algorithms" library (2002). Together
// they are the classic family: RS, JS, PJW, ELF, BKDR, SDBM, DJB, DEK, BP, FNV
// and AP, in this order. All compute in unsigned 32-bit arithmetic that wraps
// around, and take each byte of the key as a number from 0 to 255 (C code that
// runs them over signed char differs for bytes from 0x80 on). A nil key is the
// empty key.
//
// A [Family] is k index functions over m bits. [NewClassic] and [ParseFamily]
// make one of the eleven hashes or of some of them: an index is the hash
// modulo m.
//
// # What the family is not
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
// functions. Package bloom says what that costs.
package hashfamily
