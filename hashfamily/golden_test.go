package hashfamily

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// loadRows reads a file of testdata: a header, then rows of fields with tabs
// between. There must be some rows, each with as many fields as the header.
func loadRows(tb testing.TB, path, header string) [][]string {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	if !s.Scan() || s.Text() != header {
		tb.Fatalf("%s: header %q, want %q", path, s.Text(), header)
	}
	var rows [][]string
	for s.Scan() {
		row := strings.Split(s.Text(), "\t")
		if len(row) != strings.Count(header, "\t")+1 {
			tb.Fatalf("%s: row %q has %d fields", path, row, len(row))
		}
		rows = append(rows, row)
	}
	if err := s.Err(); err != nil || len(rows) < 10 {
		tb.Fatalf("%s: %d rows, %v", path, len(rows), err)
	}
	return rows
}

// numbers reads decimal numbers.
func numbers(tb testing.TB, fields ...string) []uint64 {
	tb.Helper()
	var list []uint64
	for _, field := range fields {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// expect compares both ways to compute the indices of key with the wanted ones.
func expect(tb testing.TB, f Family, key []byte, want []uint64) {
	tb.Helper()
	if got := f.AppendIndices(nil, key); !slices.Equal(got, want) {
		tb.Errorf("%s, m=%d: AppendIndices of %q is %d, want %d", f.Name(), f.M(), key, got, want)
	}
	for i, index := range want {
		if got := f.Index(i, key); got != index {
			tb.Errorf("%s, m=%d: Index %d of %q is %d, want %d", f.Name(), f.M(), i, key, got, index)
		}
	}
}

func TestWeightedGolden(t *testing.T) {
	header := "key"
	for _, seed := range weightedSeeds {
		header += fmt.Sprint("\tseed", seed)
	}
	family, err := NewWeighted(1 << 25)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range loadRows(t, "testdata/weighted.tsv", header) {
		expect(t, family, unescape(t, row[0]), numbers(t, row[1:]...))
	}
}

func TestDigestGolden(t *testing.T) {
	for _, row := range loadRows(t, "testdata/digest.tsv", "key\tm\tk\tindices") {
		mk := numbers(t, row[1:3]...)
		family, err := NewDigest(mk[0], int(mk[1]))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, family, unescape(t, row[0]), numbers(t, strings.Split(row[3], ",")...))
	}
}

func TestDoubleGolden(t *testing.T) {
	for _, row := range loadRows(t, "testdata/double.tsv", "family\tkey\tm\tk\tindices") {
		mk := numbers(t, row[2:4]...)
		family := makeFamily(t, row[0], mk[0], int(mk[1]))
		expect(t, family, unescape(t, row[1]), numbers(t, strings.Split(row[4], ",")...))
	}
}

func TestSeededGolden(t *testing.T) {
	for _, row := range loadRows(t, "testdata/seeded.tsv", "seed\tkey\tm\tk\tindices") {
		mk := numbers(t, row[2:4]...)
		family := makeFamily(t, "seeded:"+row[0], mk[0], int(mk[1]))
		expect(t, family, unescape(t, row[1]), numbers(t, strings.Split(row[4], ",")...))
	}
}
