package hashlab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"spamgate/hashfamily"
)

// ReadIndices reads a corpus, one key a line as [ReadCorpus] without asList, and a
// family of hashes for its keys: line i of indices has the numbers of line i of keys,
// as many on each line, from 0 to 2^64-1, in decimal or after "0x" in hexadecimal,
// separated by blanks, tabs or commas. The family takes them modulo its bits. Errors
// and tables use the names.
func ReadIndices(corpusName string, keys io.Reader, name string, indices io.Reader) (*Corpus, *Indices, error) {
	var lines []int32
	c, set, err := readCorpus(corpusName, keys, false, func(key int32) { lines = append(lines, key) })
	if err != nil {
		return nil, nil, err
	}
	x := &Indices{name: name, corpus: corpusName, keys: set, lines: lines}
	if err := readLines(&lineGuard{in: indices, line: 1}, x.add); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if x.line != len(lines) {
		return nil, nil, fmt.Errorf("%s ends after line %d, but %s has %d lines: give numbers for each key, a line each, also for equal keys", name, x.line, corpusName, len(lines))
	}
	return c, x, nil
}

// Indices is the numbers of a family for the keys of a corpus.
type Indices struct {
	name, corpus string
	keys         *keySet
	lines        []int32 // number of the key of each line
	line         int     // lines of numbers so far
	k            int
	values       []uint64 // k of each key
	largest      uint64
	buf          []uint64
}

// Largest returns the largest number.
func (x *Indices) Largest() uint64 { return x.largest }

// Family returns the family, which has indices for the keys of the corpus only.
func (x *Indices) Family() Family {
	return Family{Name: x.name, K: x.k, Fixed: true, New: func(m uint64) (hashfamily.Family, error) { return indexFamily{x, m}, nil }}
}

// add adds a line of numbers.
func (x *Indices) add(line []byte) error {
	if x.line == len(x.lines) {
		return fmt.Errorf("line %d: %s has only %d lines: give numbers for each key, a line each", x.line+1, x.corpus, len(x.lines))
	}
	if err := x.parse(line); err != nil {
		return fmt.Errorf("line %d: %w", x.line+1, err)
	}
	key := int(x.lines[x.line])
	x.line++
	if x.k == 0 {
		x.k = len(x.buf)
		x.values = make([]uint64, 0, x.k*len(x.keys.keys))
	}
	switch {
	case len(x.buf) != x.k:
		return fmt.Errorf("line %d: has %d numbers, line 1 has %d: give one for each function", x.line, len(x.buf), x.k)
	case key*x.k == len(x.values): // a new key
		x.values = append(x.values, x.buf...)
	default:
		for i, value := range x.values[key*x.k : (key+1)*x.k] {
			if value != x.buf[i] {
				return fmt.Errorf("line %d: number %d is %d, but %d for an equal key before: a hash has one value for a key", x.line, i+1, x.buf[i], value)
			}
		}
	}
	return nil
}

// parse parses a line of numbers into buf.
func (x *Indices) parse(line []byte) error {
	x.buf = x.buf[:0]
	for _, field := range bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' }) {
		digits, base := string(field), 10
		if len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X") {
			digits, base = digits[2:], 16
		}
		value, err := strconv.ParseUint(digits, base, 64)
		if err != nil {
			what := "not a whole number"
			if errors.Is(err, strconv.ErrRange) {
				what = "too large"
			}
			return fmt.Errorf("%.40q is %s: give numbers from 0 to 2^64-1, separated by blanks", field, what)
		}
		x.buf, x.largest = append(x.buf, value), max(x.largest, value)
	}
	if len(x.buf) == 0 || len(x.buf) > MaxOwnK {
		return fmt.Errorf("has %d numbers: give 1 to %d, one for each function", len(x.buf), MaxOwnK)
	}
	return nil
}

// indexFamily is the family over m bits.
type indexFamily struct {
	*Indices
	m uint64
}

func (f indexFamily) Name() string { return f.name }
func (f indexFamily) K() int       { return f.k }
func (f indexFamily) M() uint64    { return f.m }

// row returns the numbers of a key of the corpus.
func (f indexFamily) row(key []byte) []uint64 {
	slot := f.keys.table[f.keys.find(key)]
	if slot == 0 {
		panic("hashlab: a key that is not in the corpus") // its users ask for no others, see Family.Fixed
	}
	return f.values[int(slot-1)*f.k : int(slot)*f.k]
}

func (f indexFamily) Index(i int, key []byte) uint64 { return f.row(key)[i] % f.m }

func (f indexFamily) AppendIndices(dst []uint64, key []byte) []uint64 {
	for _, value := range f.row(key) {
		dst = append(dst, value%f.m)
	}
	return dst
}
