package hashfamily

import "testing"

// signedChar are the functions as C compiles them where char is signed: a byte above 127
// is a negative number.
var signedChar = map[string]func(key []byte) uint32{
	"RS": func(key []byte) (h uint32) {
		a := uint32(63689)
		for _, c := range key {
			h, a = h*a+extend(c), a*378551
		}
		return h
	},
	"BKDR": func(key []byte) (h uint32) {
		for _, c := range key {
			h = h*131 + extend(c)
		}
		return h
	},
	"BP": func(key []byte) (h uint32) {
		for _, c := range key {
			h = h<<7 ^ extend(c)
		}
		return h
	},
	"FNV": func(key []byte) (h uint32) {
		for _, c := range key {
			h = h*0x811C9DC5 ^ extend(c)
		}
		return h
	},
}

// extend returns a byte as a signed char becomes an unsigned int.
func extend(c byte) uint32 { return uint32(int32(int8(c))) }

// TestSignedChar checks what the documentation says of bitmaps that C programs share: ASCII
// keys have the same bits, keys with other bytes have not. BP sees the last four bytes only.
func TestSignedChar(t *testing.T) {
	const ascii, utf8, atEnd = "cafe@example.com", "caf\u00e9@example.com", "caf\u00e9"
	for _, h := range Hashes() {
		signed := signedChar[h.Name]
		if signed == nil {
			continue
		}
		for key, same := range map[string]bool{ascii: true, utf8: h.Name == "BP", atEnd: false} {
			a, b := h.Sum([]byte(key))%(1<<28), signed([]byte(key))%(1<<28)
			t.Logf("%-4s %-17q bit %9d, with signed char %9d", h.Name, key, a, b)
			if (a == b) != same {
				t.Errorf("%s of %q: the same bit is %t, want %t", h.Name, key, a == b, same)
			}
		}
	}
}
