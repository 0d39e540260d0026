package format

import (
	"math"
	"testing"

	"spamgate/internal/hashlab"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Rate(0), "0"},
		{Rate(1), "1.00"},
		{Rate(0.9996), "1.00"},
		{Rate(0.0123456), "0.0123"},
		{Rate(0.00123456), "0.00123"},
		{Rate(0.0009996), "0.00100"},
		{Rate(0.000123456), "1.23e-4"},
		{Rate(math.NaN()), "NaN"},
		{Digits(1234567, 3), "1.23e6"},
		{Digits(123456, 3), "123456"},
		{Interval(hashlab.Interval{Value: 0.5, Low: 0.4, High: 0.6}, 7), "0.500 [0.400, 0.600]"},
		{Interval(hashlab.Interval{High: 3e-7}, 0), "< 3.00e-7"},
		{Ratio(hashlab.FPRRow{Hits: 1, Rate: hashlab.Interval{Value: 0.02}, Formula: 0.01}), "2.00"},
		{Ratio(hashlab.FPRRow{Hits: 1, Rate: hashlab.Interval{Value: 0.02}, Formula: 1e-6}), "20000"},
		{Ratio(hashlab.FPRRow{Hits: 1}), "-"},
		{Bits(1 << 28), "2^28"},
		{Bits(1 << 63), "2^63"},
		{Bits(1000), "1,000"},
		{P(0), "< 1e-12"},
		{P(0.042), "0.042"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
