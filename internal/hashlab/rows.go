package hashlab

import "slices"

// Distinct returns the different keys of rows, in the order of their first
// appearance.
func Distinct[T any, K comparable](rows []T, key func(T) K) []K {
	var keys []K
	for _, r := range rows {
		if k := key(r); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Groups returns rows in groups of equal keys, in the order of their first
// appearance.
func Groups[T any, K comparable](rows []T, key func(T) K) [][]T {
	var groups [][]T
	number := make(map[K]int)
	for _, r := range rows {
		i, ok := number[key(r)]
		if !ok {
			i = len(groups)
			number[key(r)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// Filter returns the rows that match.
func Filter[T any](rows []T, match func(T) bool) []T {
	var some []T
	for _, r := range rows {
		if match(r) {
			some = append(some, r)
		}
	}
	return some
}
