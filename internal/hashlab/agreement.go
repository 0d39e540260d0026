package hashlab

import (
	"context"
	"math"
	"math/bits"

	"spamgate/hashfamily"
)

const (
	// agreementBits is the size of the largest filter for agreement, and
	// agreementKeys the number of absent keys; the other two are for the full
	// run.
	agreementBits     = 1 << 20
	agreementKeys     = 20_000
	agreementBitsFull = 1 << 22
	agreementKeysFull = 200_000
)

// familyMaker returns a family over m bits, a power of two.
type familyMaker = func(m uint64) (hashfamily.Family, error)

// measureAgreement compares the index functions of each family with each other, in
// a filter that is half full of keys of the corpus, for other keys of it. The
// filter is the largest that half of the corpus fills by the formula. A family
// that sets fewer bits than the formula says leaves it less than half full.
func measureAgreement(ctx context.Context, c *Corpus, makers []familyMaker, seed uint64, full bool) ([]Agreement, error) {
	most, want := uint64(agreementBits), agreementKeys
	if full {
		most, want = agreementBitsFull, agreementKeysFull
	}
	half := len(c.Keys) / 2
	if half == 0 {
		return nil, nil
	}
	order := stream(seed, "agreement", c.Name).Perm(len(c.Keys))
	members, absent := order[:half], order[half:min(len(order), half+want)]
	var families []hashfamily.Family
	for _, create := range makers {
		small, err := create(1 << 10)
		if err != nil {
			return nil, err
		}
		m := min(most, 1<<(bits.Len64(uint64(float64(half*small.K())/math.Ln2))-1))
		family, err := create(m)
		if err != nil {
			return nil, err
		}
		families = append(families, family)
	}
	return gather(ctx, len(families), func(i int) ([]Agreement, bool) {
		row, done := agreement(ctx, families[i], c.Keys, members, absent)
		row.Corpus = c.Name
		return []Agreement{row}, done
	}), nil
}

// agreement fills half of a filter with members, and compares the functions'
// answers for absent keys; both are numbers of keys.
func agreement(ctx context.Context, f hashfamily.Family, keys [][]byte, members, absent []int) (Agreement, bool) {
	filter, n, set, done := halfFull(ctx, f, keys, members)
	if !done {
		return Agreement{}, false
	}
	k := f.K()
	var (
		same    = newMatrix[int](k)    // keys with the same index
		answers = make([][]uint64, k)  // a bit for each key: whether its bit is set
		buf     = make([]uint64, 0, k) // indices of a key
		width   = (len(absent) + 63) / 64
	)
	for i := range answers {
		answers[i] = make([]uint64, width)
	}
	for pos, number := range absent {
		if stopped(ctx, pos) {
			return Agreement{}, false
		}
		buf = f.AppendIndices(buf[:0], keys[number])
		for i, index := range buf {
			answers[i][pos/64] |= filter.get(index) << (pos % 64)
			for j := range i {
				if buf[j] == index {
					same[i][j]++
				}
			}
		}
	}
	a := Agreement{
		Family: f.Name(), M: f.M(), N: n, Fill: float64(set) / float64(f.M()), Keys: len(absent),
		Same: newMatrix[float64](k), Kappa: newMatrix[float64](k),
	}
	for i := range k {
		a.Names = append(a.Names, hashName(f, i))
		a.Same[i][i], a.Kappa[i][i] = 1, 1
		for j := range i {
			part := float64(same[i][j]) / float64(len(absent))
			kappa := 1.0
			if part < 1 {
				kappa = cohensKappa(answers[i], answers[j], len(absent))
			}
			a.Same[i][j], a.Same[j][i] = part, part
			a.Kappa[i][j], a.Kappa[j][i] = kappa, kappa
		}
	}
	return a, true
}

// cohensKappa returns how far two functions agree, beyond chance, on which of n
// keys have their bit set: (a-c)/(1-c), where a is the part they agree on, and c
// the part that independent functions with as many set bits would agree on (J.
// Cohen, Educational and Psychological Measurement 20, 1960). If both give the
// same answer for all keys, chance explains it all: kappa is 0.
func cohensKappa(x, y []uint64, n int) float64 {
	var differ, setX, setY int
	for i := range x {
		differ += bits.OnesCount64(x[i] ^ y[i])
		setX += bits.OnesCount64(x[i])
		setY += bits.OnesCount64(y[i])
	}
	// Both parts times n², to compute with whole numbers.
	agree := (n - differ) * n
	chance := setX*setY + (n-setX)*(n-setY)
	if chance == n*n {
		return 0
	}
	return float64(agree-chance) / float64(n*n-chance)
}

// newMatrix returns a matrix of k rows and columns.
func newMatrix[T any](k int) [][]T {
	rows := make([][]T, k)
	for i := range rows {
		rows[i] = make([]T, k)
	}
	return rows
}

// halfFull adds the keys of these numbers to a filter, until half of its bits are
// set. It returns how many keys it added, and how many bits are set.
func halfFull(ctx context.Context, f hashfamily.Family, keys [][]byte, numbers []int) (filter bitmap, n int, set uint64, done bool) {
	filter = newBitmap(f.M())
	var indices []uint64
	for n < len(numbers) && 2*set < f.M() {
		if stopped(ctx, n) {
			return nil, 0, 0, false
		}
		indices = f.AppendIndices(indices[:0], keys[numbers[n]])
		for _, index := range indices {
			if filter.set(index) {
				set++
			}
		}
		n++
	}
	return filter, n, set, true
}
