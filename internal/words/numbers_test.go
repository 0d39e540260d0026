package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"spamgate/blocklist/bloom"
)

func TestParseCount(t *testing.T) {
	for s, want := range map[string]uint64{
		"1": 1, "10000000": 10_000_000, "10_000_000": 10_000_000, "1e7": 10_000_000, "1E+7": 10_000_000, "10M": 10_000_000,
		"10m": 10_000_000, "10.1M": 10_100_000, "1.5k": 1500, "2G": 2_000_000_000, "1t": 1_000_000_000_000, "0.001K": 1,
		"16Mi": 1 << 24, "1ki": 1024, "2^28": 1 << 28, "2^0": 1, "2^53": 1 << 53, "9007199254740992": 1 << 53, "3 M": 3_000_000,
		"0.3e1": 3, "16,915,025": 16_915_025, "1,000": 1000, ".5M": 500_000, "10e-1": 1,
	} {
		if got, err := ParseCount(s, bloom.MaxPlan); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	for s, says := range map[string]string{
		"": "10_000_000", "x": "10_000_000", "10,00": "10_000_000", "1,5M": "10_000_000", "1,000K": "10_000_000", ",000": "10_000_000", "--5": "10_000_000", "-2^3": "10_000_000", "10Q": "10_000_000", "0x10": "10_000_000", "_1": "10_000_000",
		"1__0": "10_000_000", "1_": "10_000_000", "1e9999": "10_000_000", "2^": "10_000_000", "2^x": "10_000_000", "2^64": "10_000_000", "inf": "10_000_000",
		"NaN": "10_000_000", "10MiB": "10_000_000", "1e": "10_000_000", "5.M": "10_000_000", "M": "10_000_000", "２": "10_000_000", strings.Repeat("1", 65): "10_000_000",
		"0": "whole number from 1 to 9007199254740992", "1.5": "whole number", "1e-3": "whole number", "2^54": "whole number",
		"-5": "whole number from 1 to 9007199254740992", "-1K": "whole number", "9007199254740993": "whole number", "1e999": "whole number", "0.1K1": "10_000_000",
	} {
		if got, err := ParseCount(s, bloom.MaxPlan); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %d, %v; want an error that says %q", s, got, err, says)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{
		"0.0001": 1e-4, "1e-4": 1e-4, "0.01%": 1e-4, "0.01 %": 1e-4, "1/10000": 1e-4, "1 / 10_000": 1e-4, "3/4": 0.75, "50%": 0.5, "1/2%": 0.005,
		"1e-300": 1e-300, ".1": 0.1, "99.9%": 0.999,
	} {
		if got, err := ParseRate(s); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", s, got, err, want)
		}
	}
	for s, says := range map[string]string{
		"": "1/10000", "%": "1/10000", "1/0": "1/10000", "1/": "1/10000", "/5": "1/10000", "1/2/3": "1/10000", "-1/-2": "1/10000", "1/-2": "1/10000", "1k": "1/10000", "0,01": "1/10000",
		"NaN": "1/10000", "1%/2": "1/10000",
		"-0.1": "above 0 and below 1", "-1e-4": "above 0 and below 1", "-1/2": "above 0 and below 1", "-5%": "above 0 and below 1", "-0": "above 0 and below 1",
		"0": "above 0 and below 1", "1": "above 0 and below 1", "100%": "above 0 and below 1", "2": "above 0 and below 1", "1e-301": "1e-300 or more",
		"0.99999999999999999999": "below 1", "1e-999": "1e-300",
	} {
		if got, err := ParseRate(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v; want an error that says %q", s, got, err, says)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for s, want := range map[string]uint64{
		"32MiB": 1 << 28, "32 mib": 1 << 28, "4096B": 1 << 15, "34MB": 272_000_000, "1kB": 8000, "0.125B": 1, "0.3B": 2,
		"2.23GiB": 19_155_554_140, "1TiB": 1 << 43, "1024TiB": 1 << 53,
	} {
		if got, err := ParseMemory(s); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	for s, says := range map[string]string{
		"32": "32MiB", "32M": "32MiB", "MiB": "32MiB", "": "32MiB", "1e9999B": "32MiB",
		"-1B": "at least a bit, up to 1024TiB", "-32": "32MiB",
		"0B": "at least a bit, up to 1024TiB", "0.1B": "at least a bit", "1025TiB": "up to 1024TiB",
	} {
		if got, err := ParseMemory(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %d, %v; want an error that says %q", s, got, err, says)
		}
	}
}

// FuzzParseQuantities wants no panic, values within their limits, and of a plain
// number what strconv makes of it.
func FuzzParseQuantities(f *testing.F) {
	for _, s := range []string{"10M", "10_000_000", "1e9", "2^28", "0.01%", "1/10000", "2.23GiB", "32 MiB", "1e-999", "1/0", "１", "0.5Ki", "%", "2^", "1e999TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		count, err := ParseCount(s, bloom.MaxPlan)
		if err == nil && (count < 1 || count > bloom.MaxPlan) {
			t.Errorf("count %q is %d", s, count)
		}
		if plain, plainErr := strconv.ParseUint(s, 10, 64); plainErr == nil && len(s) <= maxNumberBytes && plain >= 1 && plain <= bloom.MaxPlan && (err != nil || count != plain) {
			t.Errorf("count %q is %d, %v", s, count, err)
		}
		if err == nil {
			if again, err := ParseCount(fmt.Sprint(count), bloom.MaxPlan); again != count || err != nil {
				t.Errorf("count %q is %d, which is read as %d, %v", s, count, again, err)
			}
		}
		rate, err := ParseRate(s)
		if err == nil && !(rate >= bloom.MinPlanFPR && rate < 1) {
			t.Errorf("rate %q is %v", s, rate)
		}
		if plain, plainErr := strconv.ParseFloat(s, 64); plainErr == nil && err == nil && math.Abs(plain-rate) > 1e-15*plain {
			t.Errorf("rate %q is %v, and a float64 of %v", s, rate, plain)
		}
		if bits, err := ParseMemory(s); err == nil && (bits < 1 || bits > bloom.MaxPlan) {
			t.Errorf("memory %q is %d bits", s, bits)
		}
	})
}
