package bloom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

// TestClassicBitmap compares the whole bitmap of the list with the one that an
// independent C implementation makes.
func TestClassicBitmap(t *testing.T) {
	const (
		wantSum = "0162293cc620abb3fa7348b4cd4fa9c6d7558575d6d39afd8249831be8b60cb2"
		wantSet = 1_091_490
	)
	f := listFilter(t, ClassicBits)
	sum := sha256.New()
	n, err := f.WriteTo(sum)
	if err != nil || n != ClassicBits/8 {
		t.Fatalf("WriteTo: %d bytes, %v; want %d", n, err, ClassicBits/8)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != wantSum {
		t.Errorf("SHA-256 %s, want %s", got, wantSum)
	}
	if f.SetBits() != wantSet {
		t.Errorf("%d set bits, want %d", f.SetBits(), wantSet)
	}
	for _, key := range disposable.Domains() {
		if !f.MayContain(key) {
			t.Fatalf("%q was added and is denied", key)
		}
	}
}

// strided is a family that the filter knows by its interface only: indices
// first + i·step from one 64-bit hash.
type strided struct {
	k int
	m uint64
}

func (s strided) Name() string { return "strided" }
func (s strided) K() int       { return s.k }
func (s strided) M() uint64    { return s.m }

func (s strided) Index(i int, key []byte) uint64 {
	h := fnv.New64a()
	h.Write(key)
	sum := h.Sum64()
	return (sum>>32 + uint64(i)*(sum&0xFFFFFFFF|1)) % s.m
}

func (s strided) AppendIndices(dst []uint64, key []byte) []uint64 {
	for i := range s.k {
		dst = append(dst, s.Index(i, key))
	}
	return dst
}

// randomKey returns 0 to 40 bytes of any value.
func randomKey(r *rand.Rand) []byte {
	key := make([]byte, r.IntN(41))
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	return key
}

// TestAgainstPlainSets compares filters of all kinds with a set of indices that
// a map holds: same answers for keys added or not, same bits, same count.
func TestAgainstPlainSets(t *testing.T) {
	for _, m := range []uint64{1, 2, 7, 8, 9, 64, 1000, 4096, 65537, 1 << 20} {
		for _, name := range []string{"classic", "classic:AP", "classic:DJB,BP,PJW"} {
			spec, err := hashfamily.ParseSpec(name)
			if err != nil {
				t.Fatal(err)
			}
			family, err := spec.New(hashfamily.Params{M: m})
			if err != nil {
				t.Fatal(err)
			}
			againstPlainSet(t, family)
		}
		againstPlainSet(t, strided{k: 4, m: m})
	}
}

func againstPlainSet(t *testing.T, family hashfamily.Family) {
	t.Helper()
	f, err := New(family)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(family.M(), uint64(family.K())))
	set := make(map[uint64]bool)
	contains := func(key []byte) bool {
		for i := range family.K() {
			if !set[family.Index(i, key)] {
				return false
			}
		}
		return true
	}
	for range 300 {
		if key := randomKey(r); f.MayContain(key) != contains(key) {
			t.Fatalf("%s, m=%d: MayContain(%q) = %v", family.Name(), family.M(), key, !contains(key))
		}
		key := randomKey(r)
		f.Add(key)
		for i := range family.K() {
			set[family.Index(i, key)] = true
		}
		if !f.MayContain(key) {
			t.Fatalf("%s, m=%d: %q was added and is denied", family.Name(), family.M(), key)
		}
	}
	checkBitmap(t, f, set)
}

// checkBitmap compares the bits that f writes with the set, and its counts with
// those bits.
func checkBitmap(t *testing.T, f *Filter, set map[uint64]bool) {
	t.Helper()
	var out bytes.Buffer
	if _, err := f.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if want := int((f.M() + 7) / 8); out.Len() != want {
		t.Errorf("m=%d: %d bytes written, want %d", f.M(), out.Len(), want)
	}
	ones := 0
	for _, b := range out.Bytes() {
		ones += bits.OnesCount8(b)
	}
	for i := range set {
		if out.Bytes()[i/8]>>(i%8)&1 == 0 {
			t.Errorf("m=%d: bit %d is clear", f.M(), i)
		}
	}
	if ones != len(set) || f.SetBits() != uint64(ones) {
		t.Errorf("m=%d: %d bits written, SetBits %d, want %d", f.M(), ones, f.SetBits(), len(set))
	}
	if got, want := f.FillRatio(), float64(len(set))/float64(f.M()); got != want {
		t.Errorf("m=%d: fill ratio %v, want %v", f.M(), got, want)
	}
}

// TestMayContainTogether is for the race detector: lookups run side by side.
func TestMayContainTogether(t *testing.T) {
	general, err := New(strided{k: 4, m: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Filter{newClassic(t, 1<<16), general} {
		keys := disposable.Domains()[:1000]
		for _, key := range keys {
			f.Add(key)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for _, key := range keys {
					if !f.MayContain(key) {
						t.Errorf("%s: %q was added and is denied", f.Family().Name(), key)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestNewRefuses(t *testing.T) {
	for name, family := range map[string]hashfamily.Family{
		"no family":    nil,
		"no bits":      strided{k: 3, m: 0},
		"too many":     strided{k: 3, m: MaxBits + 1},
		"no functions": strided{k: 0, m: 64},
	} {
		if f, err := New(family); err == nil || f != nil {
			t.Errorf("%s: New gives %v, %v; want an error", name, f, err)
		}
	}
}

func TestEmptyAndFull(t *testing.T) {
	f := newClassic(t, 1)
	if f.MayContain(nil) || f.FPR() != 0 || f.EstimatedEntries() != 0 || f.FillRatio() != 0 {
		t.Errorf("empty: MayContain %v, FPR %v, estimate %v, fill %v", f.MayContain(nil), f.FPR(), f.EstimatedEntries(), f.FillRatio())
	}
	f.Add(nil)
	if !f.MayContain([]byte("any")) || f.FPR() != 1 || !math.IsInf(f.EstimatedEntries(), 1) || f.FillRatio() != 1 {
		t.Errorf("full: MayContain %v, FPR %v, estimate %v, fill %v", f.MayContain([]byte("any")), f.FPR(), f.EstimatedEntries(), f.FillRatio())
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write(p []byte) (int, error) { return 3, errBroken }

func TestWriteToReportsErrors(t *testing.T) {
	if n, err := newClassic(t, 64).WriteTo(brokenWriter{}); n != 3 || !errors.Is(err, errBroken) {
		t.Errorf("WriteTo: %d, %v; want 3 and the writer's error", n, err)
	}
}

// TestMayContainDoesNotAllocate has the key on the stack, where it must be able
// to stay.
func TestMayContainDoesNotAllocate(t *testing.T) {
	keys := disposable.Domains()[:1000]
	for _, family := range allFamilies(t, 1<<16) {
		f, err := New(family)
		if err != nil {
			t.Fatal(err)
		}
		f.AddAll(keys)
		for _, text := range []string{"nobody@absent.example", string(keys[0])} {
			allocs := testing.AllocsPerRun(100, func() {
				var buf [64]byte
				f.MayContain(append(buf[:0], text...))
			})
			if allocs != 0 {
				t.Errorf("%s: MayContain(%q): %v allocations, want 0", family.Name(), text, allocs)
			}
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	f := newClassic(t, 4096)
	key := []byte("spam@example.com")
	if allocs := testing.AllocsPerRun(100, func() { f.Add(key) }); allocs != 0 {
		t.Errorf("Add: %v allocations, want 0", allocs)
	}
}

// A bitmap that is read again gives the filter that was written; what is too short,
// too long or has bits above m is refused and leaves the filter empty.
func FuzzReadFrom(f *testing.F) {
	family, err := hashfamily.NewClassic(1000 - 3)
	if err != nil {
		f.Fatal(err)
	}
	filter, err := New(family)
	if err != nil {
		f.Fatal(err)
	}
	for _, key := range []string{"", "spam.example", "offers.example"} {
		filter.Add([]byte(key))
		var bitmap bytes.Buffer
		if _, err := filter.WriteTo(&bitmap); err != nil {
			f.Fatal(err)
		}
		f.Add(bitmap.Bytes())
		f.Add(append(bitmap.Bytes(), 0))
		f.Add(bitmap.Bytes()[:bitmap.Len()-1])
	}
	f.Add(bytes.Repeat([]byte{0xFF}, (1000-3+7)/8))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, bitmap []byte) {
		filter, err := New(family)
		if err != nil {
			t.Fatal(err)
		}
		filter.Add([]byte("before"))
		n, err := filter.ReadFrom(bytes.NewReader(bitmap))
		valid := len(bitmap) == 125 && bitmap[124]>>5 == 0
		if valid != (err == nil) {
			t.Fatalf("%d bytes: %v", len(bitmap), err)
		}
		if err != nil {
			if filter.SetBits() != 0 || filter.MayContain([]byte("before")) {
				t.Fatalf("the filter is not empty after %v", err)
			}
			return
		}
		var again bytes.Buffer
		if _, err := filter.WriteTo(&again); err != nil {
			t.Fatal(err)
		}
		if n != 125 || !bytes.Equal(again.Bytes(), bitmap) || filter.SetBits() != countBits(bitmap) {
			t.Fatalf("%d bytes read, %d bits set", n, filter.SetBits())
		}
	})
}
