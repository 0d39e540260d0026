package bloom

// prefetch has the bytes of three bits fetched into the processor's caches. It
// does not wait, so that the next key is hashed meanwhile; a read would have to
// come back first, as a processor finishes its instructions in order and only
// works some 200 ahead.
//
// prefetch starts to fetch the bytes of three bits into the processor's caches and
// does not wait for them, so that the next key is hashed meanwhile. A read would
// block: a processor finishes its instructions in order and works only some 200
// ahead.
//
//go:noescape
func prefetch(bits *byte, first, second, third uint32)
