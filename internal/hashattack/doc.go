// Package hashattack fools the classic filter on purpose: it searches for a few
// domain names that, once listed, make a chosen domain a false positive. And it
// shows that the same fails against a filter whose hash has a secret key.
//
// It is the reason why what the filter says is confirmed by the exact index
// before mail is turned away. None of the eleven classic hashes has a key, so
// everybody can compute which bits a look-up of the target asks for: eleven, of
// which PJW and ELF ask for the same. Whoever gets names onto a list that you use
// can set these bits. Confirmed, it costs the gate a second look-up for mail from
// the target and from the domains below it. Unconfirmed, their mail would be
// refused, and nobody would find an entry that says why.
//
// # The search
//
// Three names are enough. Each has three of the target's hashes:
//
//	PJW (and ELF)  FNV    AP
//	BKDR           SDBM   JS
//	RS             DJB    DEK
//
// and all of them BP, which sees the last four bytes of a name alone and so has
// them in common with the target (".com").
//
// All are hashes that go on byte by byte from a state, and whose step can be
// undone: with one state before it (RS, BKDR, SDBM, DJB, FNV, DEK), or with a
// handful that are quickly listed (PJW, JS, AP). So there is a meeting in the
// middle: of the texts that lead from one state to another, the first halves are
// run forwards and the second halves backwards, and those that meet are kept.
// That takes the square root of the time of trying whole texts.
//
// A name is a tower of such meetings, as in Antoine Joux, "Multicollisions in
// Iterated Hash Functions. Application to Cascaded Constructions" (CRYPTO 2004),
// who showed that several such hashes side by side are hardly harder than one:
//
//   - blocks of seven or eight bytes: all texts that lead the first hash from one
//     fixed state to another, thousands each;
//   - two storeys of four blocks: the choices from its blocks that lead the second
//     hash from one fixed state to another; the first hash does not notice which
//     are taken;
//   - the name: the pair of choices from the two storeys that leads the third hash
//     to the target's bit.
//
// Where the storeys end, the first two hashes are led to the states from which
// the name's ending leads to the target's bits. The ending is the target's
// public suffix; the 62 or 63 bytes before it are one label, so the names are such
// as somebody could register. One more hash a name doubles its width, so that a
// fourth would take about all the room that a domain name has.
//
// 62 or 63, since AP's step is one at even places and another at odd ones: where
// the target has its suffix at an odd place, as x.example has, there may be no
// text at all that ends in it at an even place and has AP's bits.
//
// # The bounds
//
// The search is for the filter's fixed size of 2^28 bits. It works for every
// target and costs seconds, so that a look-up under the classic family must never
// be taken as proof. What it needs is an entry in a list: somebody who cannot get
// names into the lists you use cannot carry it out. A target costs three entries,
// which do look random, though no stranger than names that spammers register.
//
// Under a key none of this works: the states, and the bits that the target asks
// for, are unknown. [TryKeyed] measures that, and shows what remains to somebody
// who guesses a key: success under the guess. It does not speak of attackers who
// read the key's file, or who may ask the filter questions and are told its
// answers; the gate tells nobody what its filter says.
package hashattack
