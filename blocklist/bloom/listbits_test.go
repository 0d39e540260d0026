package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"spamgate/hashfamily"
)

var testBits = ListBits{ID: [32]byte{1, 2, 3}, Capacity: 4711}

// writePart returns the stored bits of keys.
func writePart(tb testing.TB, family hashfamily.Family, shards int, keys []hashed) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := WriteListBits(tb.Context(), &b, testBits, family, shards, uint64(len(keys)), scanOf(keys)); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// encodingOf returns the encoding of stored bits.
func encodingOf(tb testing.TB, part []byte) uint32 {
	tb.Helper()
	h, err := readBitsHeader(bytes.NewReader(part))
	if err != nil {
		tb.Fatal(err)
	}
	return h.Encoding
}

// Lists of any size, united from their parts, are to the bit the filter of all
// their keys, in every family and any number of shards.
func TestUniteIsFillOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	seen := map[uint32]int{}
	for _, m := range []uint64{1000, 1 << 14, 1<<14 + 64} {
		for _, family := range allFamilies(t, m) {
			for _, shards := range []int{1, 2, 5} {
				if m%64 != 0 && shards > 1 {
					continue
				}
				united, whole := newShards(t, family, shards), newShards(t, family, shards)
				for list := range 4 {
					keys := makeKeys(string(rune('a'+list)), r.IntN(1<<r.IntN(11)))
					part := writePart(t, family, shards, keys)
					seen[encodingOf(t, part)]++
					if err := united.Unite(bytes.NewReader(part), testBits); err != nil {
						t.Fatalf("%s, m = %d, %d shards, %d keys: %v", family.Name(), m, shards, len(keys), err)
					}
					if err := whole.Fill(t.Context(), 0, scanOf(keys)); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(united.allBits(), whole.allBits()) || united.SetBits() != whole.SetBits() {
					t.Errorf("%s, m = %d, %d shards: the union has other bits", family.Name(), m, shards)
				}
			}
		}
	}
	if seen[sparseBits] == 0 || seen[denseBits] == 0 {
		t.Errorf("encodings met: %v, want both", seen)
	}
}

// Of the two encodings the shorter one is taken.
func TestListBitsAreShort(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 100, 5000, 20_000, 200_000} {
		part := writePart(t, family, 1, makeKeys("k", n))
		if limit := bitsHeaderSize + len(family.Name()) + min(3*11*n, 1<<17) + checksumSize; len(part) > limit {
			t.Errorf("%d keys: %d bytes, want at most %d", n, len(part), limit)
		}
	}
}

// Any byte that is another, and any byte that is missing or too many, is noticed,
// or at least nothing comes of it but an error.
func TestDamagedBits(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string][]hashed{"sparse": makeKeys("k", 5), "dense": makeKeys("k", 300)} {
		part := writePart(t, family, 2, keys)
		unite := func(b []byte) error {
			return newShards(t, family, 2).Unite(bytes.NewReader(b), testBits)
		}
		if err := unite(part); err != nil {
			t.Fatal(err)
		}
		for i := range part {
			b := bytes.Clone(part)
			b[i] ^= 1 << (i % 8)
			if err := unite(b); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOther) {
				t.Errorf("%s: byte %d of %d is another: %v", name, i, len(part), err)
			}
			if err := unite(part[:i]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: cut at byte %d: %v", name, i, err)
			}
		}
	}
}

func TestOtherBits(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	part := writePart(t, family, 1, makeKeys("k", 5))
	if err := newShards(t, family, 1).Unite(bytes.NewReader(part), ListBits{ID: [32]byte{9}}); !errors.Is(err, ErrOther) {
		t.Errorf("another ID: %v", err)
	}
	if _, err := ReadFuse(bytes.NewReader(part), testBits); !errors.Is(err, ErrDamaged) {
		t.Errorf("read as a fuse filter: %v", err)
	}
	if got, err := ReadListBits(bytes.NewReader(part)); err != nil || got != testBits {
		t.Errorf("ReadListBits: %v, %v", got, err)
	}
}

// Bits of another family, k, m, number of shards or secret key are refused, and the
// error names both filters.
func TestUniteRefusesOtherFilters(t *testing.T) {
	family := func(name string, m uint64, k int, key byte) hashfamily.Family {
		spec, err := hashfamily.ParseSpec(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := spec.New(hashfamily.Params{M: m, K: k, Key: bytes.Repeat([]byte{key}, hashfamily.KeySize)})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	own := family("double", 1<<12, 7, 1)
	for _, c := range []struct {
		family hashfamily.Family
		shards int
		names  string
	}{
		{family("seeded", 1<<12, 7, 1), 2, "family seeded, k = 7, 2 × 4096 bits"},
		{family("double", 1<<12, 8, 1), 2, "family double, k = 8, 2 × 4096 bits"},
		{family("double", 1<<13, 7, 1), 1, "family double, k = 7, 1 × 8192 bits"},
		{family("double", 1<<11, 7, 1), 4, "family double, k = 7, 4 × 2048 bits"},
		{family("double", 1<<12, 7, 2), 2, "under another secret key"},
	} {
		for _, n := range []int{5, 1000} { // sparse and dense
			filter := newShards(t, own, 2)
			err := filter.Unite(bytes.NewReader(writePart(t, c.family, c.shards, makeKeys("k", n))), testBits)
			if !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), "family double, k = 7, 2 × 4096 bits") {
				t.Errorf("%s, %d keys: %v", c.names, n, err)
			}
			if filter.SetBits() != 0 {
				t.Errorf("%s, %d keys: %d bits were set", c.names, n, filter.SetBits())
			}
		}
	}
}

// Bits in the format before this one are refused as those of another version, by
// Unite and by ReadListBits. The file is one that the old program wrote: its double
// family has the same name, secret key and sizes, and other indices.
func TestUniteRefusesOldFormat(t *testing.T) {
	old, err := os.ReadFile("testdata/double.v2.bits")
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, hashfamily.KeySize)
	for i := range key {
		key[i] = byte(i)
	}
	family, err := hashfamily.NewDouble(1<<12, 7, key)
	if err != nil {
		t.Fatal(err)
	}
	shards := newShards(t, family, 1)
	if err := shards.Unite(bytes.NewReader(old), testBits); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), "format version 2") {
		t.Errorf("Unite: %v", err)
	}
	if shards.SetBits() != 0 {
		t.Errorf("%d bits were set", shards.SetBits())
	}
	if _, err := ReadListBits(bytes.NewReader(old)); !errors.Is(err, ErrOther) {
		t.Errorf("ReadListBits: %v", err)
	}
	// Without the version the check of the family's indices would refuse them too.
	h := newShards(t, family, 1).header(testBits)
	if check := binary.LittleEndian.Uint64(old[96:]); h.Shape.Check == check {
		t.Errorf("the check of the family is %#x in both versions", check)
	}
}

// full takes some bytes and fails then.
type full struct{ left int }

func (w *full) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return 0, io.ErrShortWrite
	}
	w.left -= len(b)
	return len(b), nil
}

func TestWriteListBitsFails(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	keys := makeKeys("k", 100)
	whole := len(writePart(t, family, 1, keys))
	for _, room := range []int{0, bitsHeaderSize, whole - 1} {
		if err := WriteListBits(t.Context(), &full{room}, testBits, family, 1, 100, scanOf(keys)); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("room for %d bytes of %d: %v", room, whole, err)
		}
	}
	if err := WriteListBits(t.Context(), io.Discard, testBits, family, 1, 100, failingScan(keys, 10)); !errors.Is(err, errScan) {
		t.Errorf("a scan that fails: %v", err)
	}
}

// FuzzUnite: whatever bytes are given as a part, there is no panic, and no error
// means that writing the filter gives a part of the same bits.
func FuzzUnite(f *testing.F) {
	family, err := hashfamily.NewClassic(1 << 10)
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{0, 3, 200} {
		f.Add(writePart(f, family, 2, makeKeys("k", n)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, encoding := range []uint32{sparseBits, denseBits} {
			for _, count := range []uint64{0, 1, uint64(len(body)) / 2} {
				s := newShards(t, family, 2)
				h := s.header(testBits)
				h.Encoding, h.Count, h.Length = encoding, count, uint64(len(body))
				var b bytes.Buffer
				p := newBitsWriter(&b, h)
				p.write(body)
				if err := p.close(); err != nil {
					t.Fatal(err)
				}
				if s.Unite(&b, testBits) != nil {
					continue
				}
				var again bytes.Buffer
				if err := s.WriteBits(&again, testBits); err != nil {
					t.Fatal(err)
				}
				other := newShards(t, family, 2)
				if err := other.Unite(&again, testBits); err != nil || !bytes.Equal(s.allBits(), other.allBits()) {
					t.Fatalf("written and read again there are other bits: %v", err)
				}
			}
		}
	})
}
