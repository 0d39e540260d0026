package hashlab

import (
	"context"
	"math"
	"testing"

	"spamgate/hashfamily"
)

// TestAgreementAsksAbsentKeys: ideal functions agree on absent keys by chance alone.
// On keys that are in the filter they all agree, so that some of those among the
// keys asked for would show.
func TestAgreementAsksAbsentKeys(t *testing.T) {
	c := made(t, defaultSources(1, 8000)[2])
	makers := []familyMaker{func(m uint64) (hashfamily.Family, error) { return newIdeal(1, m, 4), nil }}
	rows, err := measureAgreement(context.Background(), c, makers, 1, false)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	r := rows[0]
	if r.Keys != 4000 || math.Abs(r.Fill-0.5) > 0.01 {
		t.Errorf("%d absent keys at a fill of %v", r.Keys, r.Fill)
	}
	for i := range r.Kappa {
		for j := range i {
			if math.Abs(r.Kappa[i][j]) > 5/math.Sqrt(float64(r.Keys)) {
				t.Errorf("functions %d and %d: kappa %v", i, j, r.Kappa[i][j])
			}
		}
	}
}
