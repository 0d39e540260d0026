package hashfamily

import "testing"

// TestStart walks from Start and has to meet every index.
func TestStart(t *testing.T) {
	for _, m := range []uint64{1, 2, 3, 1000, 1 << 20, 1<<32 - 5, 1 << 32} {
		double, err := NewDouble(m, 12, make([]byte, KeySize))
		if err != nil {
			t.Fatal(err)
		}
		murmur, err := NewDoubleMurmur3(m, 12)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := NewDoublePlain(m, 12)
		if err != nil {
			t.Fatal(err)
		}
		seeded, err := NewSeeded(m, 12, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []interface {
			Family
			Start(key []byte) (a, b, c uint64)
		}{double, murmur, plain, seeded} {
			for _, key := range []string{"", "a", "spam@example.com"} {
				a, b, c := f.Start([]byte(key))
				for i, want := range f.AppendIndices(nil, []byte(key)) {
					if got := (a + uint64(i)*b + uint64(i*(i-1)/2)*c) % m; got != want {
						t.Errorf("%s, m=%d, key %q: index %d is %d, want %d", f.Name(), m, key, i, got, want)
					}
				}
			}
		}
	}
}
