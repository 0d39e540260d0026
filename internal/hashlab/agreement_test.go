package hashlab

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"

	"spamgate/hashfamily"
)

func measureAgreementOf(tb testing.TB, c *Corpus, create familyMaker) Agreement {
	tb.Helper()
	rows, err := measureAgreement(context.Background(), c, []familyMaker{create}, 1, false)
	if err != nil || len(rows) != 1 {
		tb.Fatalf("%d rows, %v", len(rows), err)
	}
	a := rows[0]
	for i := range a.Names {
		if a.Same[i][i] != 1 || a.Kappa[i][i] != 1 {
			tb.Errorf("%s disagrees with itself", a.Names[i])
		}
		for j := range a.Names {
			if a.Same[i][j] != a.Same[j][i] || a.Kappa[i][j] != a.Kappa[j][i] {
				tb.Errorf("%s and %s: not the same both ways", a.Names[i], a.Names[j])
			}
		}
	}
	return a
}

// Of 10 keys: alike on 7 (4 set, 3 clear); x finds 6 set, y 5. By chance
// 0.6·0.5 + 0.4·0.5 = 0.5; (0.7-0.5)/0.5.
func TestCohensKappa(t *testing.T) {
	for _, tt := range []struct {
		x, y uint64
		n    int
		want float64
	}{
		{0b1111_11_0000, 0b1111_00_1000, 10, 0.4},
		{0b1010, 0b1010, 4, 1},
		{0b1010, 0b0101, 4, -1},
		{0b1100, 0b1010, 4, 0},
		{0b1111, 0b1010, 4, 0}, // always set: says nothing
		{0b1111, 0b1111, 4, 0},
		{0, 0, 4, 0},
		{0b1111, 0, 4, 0},
	} {
		if got := cohensKappa([]uint64{tt.x}, []uint64{tt.y}, tt.n); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%b and %b: %g, want %g", tt.x, tt.y, got, tt.want)
		}
	}
}

// PJW and ELF are one function; no other two of the classics are.
func TestAgreementOfClassics(t *testing.T) {
	a := measureAgreementOf(t, comNames(40_000), makerOf(t, "classic", 0))
	if a.Family != "classic" || a.Corpus != "com" || len(a.Names) != 11 {
		t.Fatalf("%s over %s: %v", a.Family, a.Corpus, a.Names)
	}
	pjw, elf, bp := slices.Index(a.Names, "PJW"), slices.Index(a.Names, "ELF"), slices.Index(a.Names, "BP")
	for i := range a.Names {
		for j := range i {
			if twins := i == elf && j == pjw; twins != (a.Same[i][j] == 1) || twins != (a.Kappa[i][j] == 1) {
				t.Errorf("%s and %s: the same index on %g, kappa %g", a.Names[i], a.Names[j], a.Same[i][j], a.Kappa[i][j])
			}
		}
		// In this small filter too BP is one constant over names under .com: its
		// answer says nothing about another function's.
		if i != bp && a.Kappa[i][bp] != 0 {
			t.Errorf("%s and BP: kappa %g", a.Names[i], a.Kappa[i][bp])
		}
	}
}

// Independent functions have a kappa near 0 (with 20,000 keys it strays by
// 0.007), and the same index once in m keys.
func TestAgreementOfGoodFamilies(t *testing.T) {
	c := numbers(60_000)
	for name, create := range map[string]familyMaker{
		"ideal":          func(m uint64) (hashfamily.Family, error) { return newIdeal(1, m, 8), nil },
		"xxh3":           func(m uint64) (hashfamily.Family, error) { return newXXH3(m, 8), nil },
		"double":         makerOf(t, "double", 8),
		"double:murmur3": makerOf(t, "double:murmur3", 8),
	} {
		a := measureAgreementOf(t, c, create)
		if a.Family != name || !slices.Equal(a.Names, []string{"0", "1", "2", "3", "4", "5", "6", "7"}) {
			t.Errorf("%s: %s has %v", name, a.Family, a.Names)
		}
		for i := range a.Names {
			for j := range i {
				if math.Abs(a.Kappa[i][j]) > 0.04 || a.Same[i][j] > 0.001 {
					t.Errorf("%s: %d and %d: the same index on %g, kappa %g", name, j, i, a.Same[i][j], a.Kappa[i][j])
				}
			}
		}
	}
}

// badFamily has a function twice, and its complement: with m-1 the index is
// another one, and tells the same where the filter mirrors itself.
type badFamily struct{ hashfamily.Family }

func (badFamily) Name() string                       { return "bad" }
func (badFamily) HashName(i int) string              { return "f" + strconv.Itoa(i) }
func (f badFamily) append(key []byte) (first uint64) { return f.Family.Index(0, key) }

func (f badFamily) AppendIndices(dst []uint64, key []byte) []uint64 {
	first := f.append(key)
	return append(dst, first, first, f.M()-1-first)
}

func TestAgreementOfBadFamily(t *testing.T) {
	a := measureAgreementOf(t, numbers(20_000), func(m uint64) (hashfamily.Family, error) {
		return badFamily{newIdeal(1, m, 3)}, nil
	})
	if a.Same[0][1] != 1 || a.Kappa[0][1] != 1 {
		t.Errorf("one function twice: the same index on %g, kappa %g", a.Same[0][1], a.Kappa[0][1])
	}
	if a.Same[0][2] != 0 || a.Kappa[0][2] != 1 {
		t.Errorf("a mirrored function: the same index on %g, kappa %g", a.Same[0][2], a.Kappa[0][2])
	}
	if !slices.Equal(a.Names, []string{"f0", "f1", "f2"}) {
		t.Errorf("%v", a.Names)
	}
}

func TestHalfFull(t *testing.T) {
	c := numbers(10_000)
	places := stream(1).Perm(len(c.Keys))
	for _, tt := range []struct{ m, least, most uint64 }{
		{1 << 12, 1 << 11, 1<<11 + 4}, // no more than a key's bits too many
		{1 << 20, 48_500, 50_000},     // five bits of each key, a few of them twice
	} {
		filter, n, set, done := halfFull(context.Background(), newXXH3(tt.m, 5), c.Keys, places)
		ones := uint64(0)
		for i := range tt.m {
			ones += filter.get(i)
		}
		if !done || ones != set || set < tt.least || set > tt.most || (n == len(places)) != (2*set < tt.m) {
			t.Errorf("%d keys set %d (%d) of %d bits", n, set, ones, tt.m)
		}
	}
}

// The filter is the largest that half of the keys fill by the formula, and what
// classic hashes leave clear of it shows.
func TestAgreementFill(t *testing.T) {
	c := comNames(40_000)
	good := measureAgreementOf(t, c, func(m uint64) (hashfamily.Family, error) { return newIdeal(1, m, 11), nil })
	// 20,000 · 11 / ln 2 = 317,000, between 2^18 and 2^19.
	if good.M != 1<<18 || good.Keys != agreementKeys || math.Abs(good.Fill-0.5) > 1e-3 || !near(float64(good.N), 1<<18*math.Ln2/11, 0.02) {
		t.Errorf("%d bits, %d keys fill %g, %d absent", good.M, good.N, good.Fill, good.Keys)
	}
	classic := measureAgreementOf(t, c, makerOf(t, "classic", 0))
	if classic.M != good.M || classic.N <= good.N || classic.Fill > 0.501 {
		t.Errorf("%d bits, %d keys fill %g", classic.M, classic.N, classic.Fill)
	}
}

func TestAgreementErrors(t *testing.T) {
	refuses := errors.New("refuses")
	for _, index := range []uint64{1 << 10, 1 << 11} {
		rows, err := measureAgreement(context.Background(), numbers(1000), []familyMaker{func(m uint64) (hashfamily.Family, error) {
			if m == index {
				return nil, refuses
			}
			return newXXH3(m, 3), nil
		}}, 1, false)
		if !errors.Is(err, refuses) || rows != nil {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	}
	if rows, err := measureAgreement(context.Background(), numbers(1), []familyMaker{makerOf(t, "classic", 0)}, 1, false); rows != nil || err != nil {
		t.Errorf("of one key: %d rows, %v", len(rows), err)
	}
}

// FuzzKappa checks that kappa stays within its limits, and is what its two
// arguments say in either order.
func FuzzKappa(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint8(1))
	f.Add(uint64(0b1100), uint64(0b1010), uint8(4))
	f.Add(^uint64(0), uint64(1), uint8(64))
	f.Fuzz(func(t *testing.T, x, y uint64, size uint8) {
		n := int(size)%64 + 1
		x, y = x<<(64-n)>>(64-n), y<<(64-n)>>(64-n)
		kappa := cohensKappa([]uint64{x}, []uint64{y}, n)
		if !(kappa >= -1-1e-9 && kappa <= 1+1e-9) || kappa != cohensKappa([]uint64{y}, []uint64{x}, n) {
			t.Errorf("%b and %b of %d: %g", x, y, n, kappa)
		}
		if x == y && x != 0 && x != 1<<n-1 && math.Abs(kappa-1) > 1e-9 {
			t.Errorf("%b with itself: %g", x, kappa)
		}
	})
}
