package bloom

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

// newClassic makes an empty filter over m bits for the classic family, or for
// the hashes that are named.
func newClassic(tb testing.TB, m uint64, hashes ...string) *Filter {
	tb.Helper()
	family, err := hashfamily.NewClassic(m, hashes...)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := New(family)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// allFamilies are families of every kind over m bits, those left out that take
// other m only, and one that filters know by its interface alone.
func allFamilies(tb testing.TB, m uint64) []hashfamily.Family {
	tb.Helper()
	families := []hashfamily.Family{strided{k: 4, m: m}}
	for _, f := range []struct {
		name string
		k    int
	}{
		{"classic", 0}, {"classic9", 0}, {"classic:AP", 0}, {"classic:DJB,BP,PJW", 0}, {"classic:DEK,BKDR,RS,DJB", 0},
		{"weighted", 0}, {"weighted:4,300,70000", 0},
		{"digest", 1}, {"digest", 64},
		{"double", 1}, {"double", 8}, {"double:murmur3", 64},
		{"seeded", 1}, {"seeded", 15}, {"seeded:7", 10},
	} {
		spec, err := hashfamily.ParseSpec(f.name)
		if err != nil {
			tb.Fatal(err)
		}
		if fit, err := spec.FitM(m); err != nil || fit != m {
			continue
		}
		family, err := spec.New(hashfamily.Params{M: m, K: f.k, Key: make([]byte, hashfamily.KeySize)})
		if err != nil {
			tb.Fatal(err)
		}
		families = append(families, family)
	}
	return families
}

// listFilter is the classic filter over m bits with the list in it.
func listFilter(tb testing.TB, m uint64) *Filter {
	tb.Helper()
	f := newClassic(tb, m)
	for _, key := range disposable.Domains() {
		f.Add(key)
	}
	return f
}

// names makes up domains and addresses that look like real ones, the same for
// the same seed. Their top-level domains are as frequent as in the list.
type names struct {
	rand *rand.Rand
	tlds [][]byte
}

func newNames(tb testing.TB, seed uint64) *names {
	n := &names{rand: rand.New(rand.NewPCG(seed, 28))}
	for _, domain := range disposable.Domains() {
		n.tlds = append(n.tlds, domain[bytes.LastIndexByte(domain, '.')+1:])
	}
	return n
}

var syllables = []string{
	"an", "bel", "ca", "dor", "en", "fi", "gra", "ha", "ing", "jo", "ka", "lin", "mar", "net", "or",
	"pa", "qui", "ro", "sta", "ter", "u", "ven", "web", "xa", "yo", "zen", "mail", "shop", "data", "hub",
}

// appendWord appends a made-up name of two to five syllables, now and then with
// a number.
func (n *names) appendWord(b []byte) []byte {
	for range 2 + n.rand.IntN(4) {
		b = append(b, syllables[n.rand.IntN(len(syllables))]...)
	}
	if n.rand.IntN(3) == 0 {
		b = strconv.AppendInt(b, n.rand.Int64N(10000), 10)
	}
	return b
}

// appendDomain appends a made-up domain of two or three labels.
func (n *names) appendDomain(b []byte) []byte {
	if n.rand.IntN(4) == 0 {
		b = append(n.appendWord(b), '.')
	}
	b = append(n.appendWord(b), '.')
	return append(b, n.tlds[n.rand.IntN(len(n.tlds))]...)
}

// appendAddress appends a made-up address. Different serial numbers make
// different addresses.
func (n *names) appendAddress(b []byte, serial uint64) []byte {
	b = append(n.appendWord(b), '.')
	b = append(strconv.AppendUint(b, serial, 36), '@')
	return n.appendDomain(b)
}

// absentKeys returns keys that are not in the list: for each of count made-up
// senders the address, "@" and domain, the domain and the parts of it that have
// a dot, and the local part with "@".
func absentKeys(tb testing.TB, count int) [][]byte {
	tb.Helper()
	listed := make(map[string]bool)
	for _, domain := range disposable.Domains() {
		listed[string(domain)] = true
	}
	n := newNames(tb, 2)
	var keys [][]byte
	for serial := range count {
		address := n.appendAddress(nil, uint64(serial))
		pos := bytes.IndexByte(address, '@')
		keys = append(keys, address, address[pos:], address[:pos+1])
		for d := address[pos+1:]; bytes.IndexByte(d, '.') >= 0; d = d[bytes.IndexByte(d, '.')+1:] {
			if !listed[string(d)] {
				keys = append(keys, d)
			}
		}
	}
	return keys
}
