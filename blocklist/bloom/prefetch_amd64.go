package bloom

// prefetch starts to fetch the bytes of three bits into the processor's caches and
// does not wait for them, so that the next key is hashed meanwhile. A read would
// block: a processor finishes its instructions in order and works only some 200
// ahead.
//
//go:noescape
func prefetch(bits *byte, first, second, third uint32)
