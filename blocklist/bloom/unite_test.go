package bloom

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"spamgate/hashfamily"
)

// plainUniteDense is uniteDense by one goroutine.
func (s *Sharded) plainUniteDense(p *bitsReader) error {
	if p.Length != s.Bytes() {
		return damaged("the bitmaps have another length")
	}
	for _, f := range s.shards {
		for pos := 0; pos < len(f.bits); {
			piece := p.buf[:min(len(p.buf), len(f.bits)-pos)]
			if _, err := io.ReadFull(p, piece); err != nil {
				return truncated(err)
			}
			f.setBits += orInto(f.bits[pos:], piece)
			pos += len(piece)
		}
	}
	return nil
}

// densePart is a part of as many bitmaps, whose bits are random.
func densePart(tb testing.TB, family hashfamily.Family, shards int, seed uint64) []byte {
	tb.Helper()
	s := newShards(tb, family, shards)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, f := range s.shards {
		for i := range f.bits {
			f.bits[i] = byte(r.Uint64())
		}
		f.setBits = f.m // more than few, so that the part is dense
	}
	var b bytes.Buffer
	if err := s.WriteBits(&b, testBits); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func unitePlainly(s *Sharded, r io.Reader) error {
	p, err := openBits(r, testBits, denseBits)
	if err == nil {
		err = s.plainUniteDense(p)
	}
	if err == nil {
		err = p.close()
	}
	return err
}

// Bitmaps of many pieces, whole and not, in an empty filter and then in one that
// is not: the bits and their number are those of the plain twin, damage anywhere
// is noticed, and no goroutine stays at work on an error.
func TestUniteDense(t *testing.T) {
	for _, m := range []uint64{8 * pieceSize * 2, 8*(5*pieceSize/2) + 64} {
		family, err := hashfamily.NewClassic(m)
		if err != nil {
			t.Fatal(err)
		}
		const shards = 6
		united, plain := newShards(t, family, shards), newShards(t, family, shards)
		for seed := range uint64(2) {
			part := densePart(t, family, shards, seed)
			if err := united.Unite(bytes.NewReader(part), testBits); err != nil {
				t.Fatal(err)
			}
			if err := unitePlainly(plain, bytes.NewReader(part)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(united.allBits(), plain.allBits()) || united.SetBits() != plain.SetBits() {
				t.Fatalf("m = %d: %d bits set, plainly %d", m, united.SetBits(), plain.SetBits())
			}
			for _, pos := range []int{bitsHeaderSize, len(part) / 2, len(part) - checksumSize - 1, len(part) - 1} {
				part[pos] ^= 4
				if err := newShards(t, family, shards).Unite(bytes.NewReader(part), testBits); err == nil {
					t.Errorf("byte %d of %d is another, unnoticed", pos, len(part))
				}
				part[pos] ^= 4
				if err := newShards(t, family, shards).Unite(bytes.NewReader(part[:pos]), testBits); err == nil {
					t.Errorf("cut at byte %d, unnoticed", pos)
				}
			}
		}
	}
}

// BenchmarkUnite makes a filter of 256 MiB, that of a hundred million keys, of its
// part, with all goroutines and with one.
func BenchmarkUnite(b *testing.B) {
	family, err := hashfamily.NewClassic(ClassicBits)
	if err != nil {
		b.Fatal(err)
	}
	const shards = 8
	part := densePart(b, family, shards, 1)
	for name, unite := range map[string]func(*Sharded, io.Reader) error{
		"parallel": func(s *Sharded, r io.Reader) error { return s.Unite(r, testBits) },
		"plain":    unitePlainly,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(part)))
			for b.Loop() {
				if err := unite(newShards(b, family, shards), bytes.NewReader(part)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
