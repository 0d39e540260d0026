package blocklist

import "testing"

// What tests that need a Store too, and so stand outside of the package, use of
// its tests.

type PlainList = plainList

var (
	RandomLists     = randomLists
	RandomText      = randomText
	PlainDecision   = plainDecision
	DescribeVerdict = describeDecision
	SomeFilters     = someFilters
	UnlessShort     = unlessShort
)

func FilterBits(tb testing.TB, s *Set) []byte   { return bitsOf(tb, s.filter) }
func (s *Set) FilterMayContain(key string) bool { return s.filter.mayContain([]byte(key)) }
