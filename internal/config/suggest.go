package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// suggest says what may have been meant by an unknown key of a table: a key
// that is spelled nearly so, a key of that name in another table, or else
// which keys there are.
func suggest(key, table string, known []string) string {
	if name, ok := nearest(key, known); ok {
		return fmt.Sprintf("did you mean %q?", name)
	}
	if place := placeOf(key); place != "" {
		return "it belongs " + place
	}
	if len(known) > manyKeys {
		return "all keys stand in config.toml as it is shipped"
	}
	names := strings.Join(known, ", ")
	if table == "" {
		return "there are " + names
	}
	return display(table) + " has " + names
}

// manyKeys is how many are too many for a line.
const manyKeys = 20

// placeOf says where a key of that name has its place, or "".
func placeOf(key string) string {
	if slices.Contains(keysOf(reflect.TypeFor[Config]()), key) {
		return "at the top of the file, before the first [table]"
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		name := field.Tag.Get("toml")
		switch t := field.Type; {
		case t.Kind() == reflect.Slice && slices.Contains(keysOf(t.Elem()), key):
			return "in a [[" + name + "]]"
		case t.Kind() == reflect.Struct && slices.Contains(keysOf(t), key):
			return "in [" + name + "]"
		}
	}
	return ""
}

// nearest returns the known name with the fewest edits to s, if they are few
// enough to be a slip: at most a third of the letters.
func nearest(s string, known []string) (string, bool) {
	best, fewest := "", len(s)/3+1
	for _, name := range known {
		if n := edits(strings.ToLower(s), name); n < fewest {
			best, fewest = name, n
		}
	}
	return best, best != ""
}

// edits is the Levenshtein distance of two strings in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: edits from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
