package words

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"spamgate/blocklist/bloom"
)

// Numbers are parsed as fractions, not as floating-point numbers, so that 10.1M is a whole number
// and 2^53+1 is not 2^53.

// decimal matches a number without a unit. The exponent is short, to prevent numbers of a
// million digits. Negative numbers match, since an error about the range says more than one
// about the form.
var decimal = regexp.MustCompile(`^-?(\d+(_\d+)*(\.\d+)?|\.\d+)([eE][+-]?\d{1,3})?$`)

// grouped matches a whole number with commas between groups of three digits, as in our output.
var grouped = regexp.MustCompile(`^\d{1,3}(,\d{3})+$`)

// maxNumberBytes is the length of the longest accepted number.
const maxNumberBytes = 64

// countUnits are the optional units of a count, in upper or lower case.
var countUnits = map[string]*big.Rat{
	"": big.NewRat(1, 1), "k": power(10, 3), "m": power(10, 6), "g": power(10, 9), "t": power(10, 12),
	"ki": power(2, 10), "mi": power(2, 20), "gi": power(2, 30), "ti": power(2, 40),
}

// memoryUnits are the units of a memory size, in upper or lower case.
var memoryUnits = map[string]*big.Rat{
	"b": big.NewRat(1, 1), "kb": power(10, 3), "mb": power(10, 6), "gb": power(10, 9), "tb": power(10, 12),
	"kib": power(2, 10), "mib": power(2, 20), "gib": power(2, 30), "tib": power(2, 40),
}

func power(base, exponent int64) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil))
}

// parseNumber parses a number with one of the units. Its errors show examples.
func parseNumber(s string, units map[string]*big.Rat, examples string) (*big.Rat, error) {
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, ok := units[strings.ToLower(s[len(number):])]
	number = strings.TrimSpace(number)
	if !ok || len(number) > maxNumberBytes || !decimal.MatchString(number) {
		return nil, errors.New("write it as in " + examples)
	}
	value, ok := new(big.Rat).SetString(strings.ReplaceAll(number, "_", ""))
	if !ok {
		return nil, errors.New("write it as in " + examples)
	}
	return value.Mul(value, unit), nil
}

// ParseCount parses a whole number from 1 to limit: 10000000, 10,000,000,
// 10_000_000, 1e7, 10M, 16Mi or 2^24.
func ParseCount(s string, limit uint64) (uint64, error) {
	const examples = "10000000, 10_000_000, 1e7, 10M (K, M, G, T: powers of ten), 16Mi (Ki, Mi, Gi, Ti: of two) or 2^24"
	if grouped.MatchString(s) {
		s = strings.ReplaceAll(s, ",", "")
	}
	var value *big.Rat
	var err error
	if exponent, ok := strings.CutPrefix(s, "2^"); ok {
		e, parseErr := strconv.ParseUint(exponent, 10, 6)
		if parseErr != nil {
			return 0, errors.New("write it as in " + examples)
		}
		value = power(2, int64(e))
	} else if value, err = parseNumber(s, countUnits, examples); err != nil {
		return 0, err
	}
	if !value.IsInt() || value.Sign() <= 0 || !value.Num().IsUint64() || value.Num().Uint64() > limit {
		return 0, fmt.Errorf("use a whole number from 1 to %d", limit)
	}
	return value.Num().Uint64(), nil
}

// ParseRate parses a false positive rate: 0.0001, 1e-4, 0.01% or 1/10000.
func ParseRate(s string) (float64, error) {
	const examples = "0.0001, 1e-4, 0.01% or 1/10000"
	plain := map[string]*big.Rat{"": big.NewRat(1, 1)}
	number, percent := strings.CutSuffix(s, "%")
	number, divisor, fraction := strings.Cut(number, "/")
	value, err := parseNumber(strings.TrimSpace(number), plain, examples)
	if err != nil {
		return 0, err
	}
	if fraction {
		by, err := parseNumber(strings.TrimSpace(divisor), plain, examples)
		if err != nil || by.Sign() <= 0 {
			return 0, errors.New("write it as in " + examples)
		}
		value.Quo(value, by)
	}
	if percent {
		value.Quo(value, big.NewRat(100, 1))
	}
	// The float64 has to be below 1, not only the fraction.
	rate, _ := value.Float64()
	if !(rate >= bloom.MinPlanFPR && rate < 1) {
		return 0, fmt.Errorf("a rate is above 0 and below 1 (100%%); use %v or more", bloom.MinPlanFPR)
	}
	return rate, nil
}

// ParseSize parses a whole number of bytes with its unit, in upper or lower case: "1GiB", "500 MB".
func ParseSize(s string) (bytes int64, ok bool) {
	value, err := parseNumber(s, memoryUnits, "1GiB")
	ok = err == nil && value.IsInt() && value.Sign() >= 0 && value.Num().IsInt64()
	if ok {
		bytes = value.Num().Int64()
	}
	return bytes, ok
}

// ParseMemory parses a size with its unit, 32MiB, 2.23GiB or 34MB, and returns the whole number
// of bits.
func ParseMemory(s string) (bits uint64, err error) {
	const examples = "32MiB (KiB, MiB, GiB, TiB: powers of two), 34MB (KB, MB, GB, TB: of ten) or 4096B"
	value, err := parseNumber(s, memoryUnits, examples)
	if err != nil {
		return 0, err
	}
	value.Mul(value, big.NewRat(8, 1))
	whole := new(big.Int).Quo(value.Num(), value.Denom())
	if whole.Sign() <= 0 || !whole.IsUint64() || whole.Uint64() > bloom.MaxPlan {
		return 0, fmt.Errorf("use a size of at least a bit, up to %dTiB", uint64(bloom.MaxPlan/8)>>40)
	}
	return whole.Uint64(), nil
}
