package hashfamily

import (
	"slices"
	"strings"
	"testing"
)

var sizes = []uint64{1, 2, 3, 7, 8, 1000, 65537, 1 << 28, 1<<32 - 1, 1 << 32}

func TestClassicIndicesAreTheHashes(t *testing.T) {
	hashes := Hashes()
	for _, m := range sizes {
		family, err := NewClassic(m)
		if err != nil {
			t.Fatal(err)
		}
		if family.K() != 11 || family.M() != m || family.Name() != "classic" {
			t.Fatalf("m=%d: K %d, M %d, name %q", m, family.K(), family.M(), family.Name())
		}
		for _, v := range loadVectors(t) {
			all := family.AppendIndices(nil, v.key)
			for i, sum := range v.sums {
				want := uint64(sum) % m
				if got := family.Index(i, v.key); got != want || all[i] != want {
					t.Errorf("m=%d, %s of %q: Index %d, AppendIndices %d, want %d", m, hashes[i].Name, v.key, got, all[i], want)
				}
			}
		}
	}
}

func TestClassicSubset(t *testing.T) {
	family, err := NewClassic(1000, "AP", "RS", "BP")
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("spam@example.com")
	want := []uint64{7, uint64(AP(key)) % 1000, uint64(RS(key)) % 1000, uint64(BP(key)) % 1000}
	if got := family.AppendIndices([]uint64{7}, key); !slices.Equal(got, want) {
		t.Errorf("indices %v, want %v", got, want)
	}
	for i, name := range []string{"AP", "RS", "BP"} {
		if got := family.HashName(i); got != name {
			t.Errorf("HashName(%d) = %q, want %q", i, got, name)
		}
	}
}

func TestClassic9(t *testing.T) {
	nine := makeFamily(t, "classic9", 1<<28, 0)
	eachRandomKey(func(key []byte) {
		var want []uint64
		for _, h := range Hashes() {
			if h.Name != "ELF" && h.Name != "BP" {
				want = append(want, uint64(h.Sum(key))%(1<<28))
			}
		}
		expect(t, nine, key, want)
	})
}

func TestClassicRefusesBits(t *testing.T) {
	for _, m := range []uint64{0, MaxClassicBits + 1, 1 << 63} {
		if family, err := NewClassic(m); err == nil || family != nil {
			t.Errorf("NewClassic(%d): %v, %v; want an error", m, family, err)
		}
	}
}

func TestClassicDoesNotAllocate(t *testing.T) {
	family, err := NewClassic(1 << 28)
	if err != nil {
		t.Fatal(err)
	}
	room := make([]uint64, 0, family.K())
	allocs := testing.AllocsPerRun(100, func() {
		var buf [32]byte
		key := append(buf[:0], "spam@example.com"...)
		for i := range family.K() {
			family.Index(i, key)
		}
		family.AppendIndices(room, key)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// FuzzFamily checks that a family's indices are in range and are the plain
// hashes modulo m, for any key, m and choice of hashes (a bit each).
func FuzzFamily(f *testing.F) {
	f.Add([]byte(""), uint64(1), uint16(0x7FF))
	f.Add([]byte("spam@example.com"), uint64(1<<28), uint16(0x7FF))
	f.Add([]byte("m\xc3\xbcller@b\xc3\xbccher.example"), uint64(65537), uint16(0x403))
	f.Add([]byte("\xff\xfe\x80\x00"), uint64(1<<32), uint16(0x100))
	f.Add([]byte("\x00\x00"), uint64(1<<32-1), uint16(0x0C))
	f.Fuzz(func(t *testing.T, key []byte, m uint64, choice uint16) {
		m = m%MaxClassicBits + 1
		var hashes []Hash
		var names []string
		for i, h := range Hashes() {
			if choice>>i&1 == 1 {
				hashes, names = append(hashes, h), append(names, h.Name)
			}
		}
		if len(hashes) == 0 {
			hashes = Hashes()
		}
		family, err := NewClassic(m, names...)
		if err != nil {
			t.Fatal(err)
		}
		indices := family.AppendIndices(nil, key)
		if len(indices) != family.K() || family.K() != len(hashes) {
			t.Fatalf("%d indices, K %d, want %d", len(indices), family.K(), len(hashes))
		}
		for i, h := range hashes {
			want := uint64(h.Sum(key)) % m
			if indices[i] != want || family.Index(i, key) != want || want >= m {
				t.Errorf("%s, m=%d: %d and %d, want %d", h.Name, m, indices[i], family.Index(i, key), want)
			}
		}
	})
}

func TestIndependent(t *testing.T) {
	for _, tt := range []struct {
		names string
		want  int
	}{
		{"RS,JS,PJW,ELF,BKDR,SDBM,DJB,DEK,BP,FNV,AP", 9},
		{"RS,JS,AP", 3},
		{"PJW,ELF", 1},
		{"ELF,AP", 2},
		{"BP", 1},
		{"BP,RS", 1},
	} {
		c, err := NewClassic(1<<28, strings.Split(tt.names, ",")...)
		if err != nil || c.Independent() != tt.want {
			t.Errorf("%s: %d, %v; want %d", tt.names, c.Independent(), err, tt.want)
		}
	}
}
