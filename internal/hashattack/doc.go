// Package hashattack attacks the classic filter: it searches for a few domain names
// that, once listed, make a chosen domain a false positive. It also shows that the
// attack fails against a filter whose hash has a secret key.
//
// This is why the gate confirms each answer of the filter with the exact index
// before it refuses mail. None of the eleven classic hashes has a key, so everybody
// can compute the eleven bits that a lookup of the target tests, of which those of
// PJW and ELF are the same. Somebody who gets names onto a list that you use can
// set these bits. With confirmation, that costs the gate a second lookup for mail
// from the target and its subdomains. Without it, the gate would refuse their mail,
// and nobody would find an entry that says why.
//
// # The search
//
// Three names are enough. Each has three of the target's hashes:
//
//	PJW (and ELF)  FNV    AP
//	BKDR           SDBM   JS
//	RS             DJB    DEK
//
// and all of them BP, which depends on the last four bytes of a name, and these are
// the target's (".com").
//
// Each hash computes a state byte by byte, and its step can be inverted: the state
// before is unique (RS, BKDR, SDBM, DJB, FNV, DEK), or one of a few that are quickly
// listed (PJW, JS, AP). This allows a meet-in-the-middle search for the texts that
// lead from one state to another: it runs the first halves forwards and the second
// halves backwards, and keeps those that meet. That takes the square root of the
// time of trying whole texts.
//
// A name is a tower of such searches, as in Antoine Joux, "Multicollisions in
// Iterated Hash Functions. Application to Cascaded Constructions" (CRYPTO 2004),
// who showed that attacking several such hashes at once is hardly harder than
// attacking one:
//
//   - blocks of seven or eight bytes: all texts that lead the first hash from one
//     fixed state to another, thousands each;
//   - two storeys of four blocks: the combinations of its blocks that lead the
//     second hash from one fixed state to another; all combinations are equal for
//     the first hash;
//   - the name: the pair of storeys that leads the third hash to the target's bit.
//
// At the end of the storeys, the first two hashes are in the states from which the
// name's ending leads to the target's bits. The ending is the target's public
// suffix, and the 62 or 63 bytes before it are one label, so that somebody could
// register the names. Each further hash doubles the width of a name, so that a
// fourth would need nearly the whole length of a domain name.
//
// The width is 62 or 63, since AP has different steps at even and odd positions: if
// the target has its suffix at an odd position, like x.example, possibly no text
// that ends in it at an even position has AP's bits.
//
// # The bounds
//
// The search is for the filter's fixed size of 2^28 bits. It works for every target
// and takes seconds, so that an answer of a classic filter is never a proof. It
// needs entries in a list: somebody who cannot get names into the lists that you
// use cannot attack. A target needs three entries, which look random, though not
// more than names that spammers register.
//
// With a secret key the attack fails, since the states and the target's bits are
// unknown. [TryKeyed] measures that, and shows what an attacker achieves who
// guesses a key: success under the guessed key alone. It does not cover attackers
// who read the key's file, or who can query the filter; the gate tells nobody the
// filter's answers.
package hashattack
