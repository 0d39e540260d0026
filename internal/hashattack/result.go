package hashattack

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Result is the result of a search.
type Result struct {
	Target string `json:"target"` // in normal form
	Seed   uint64 `json:"seed"`
	Bits   []Bit  `json:"bits"` // the target's bits, in the order of the hashes
	Names  []Name `json:"names"`

	// MayContain is the answer for the target of a real filter of 2^28 bits with
	// the names and nothing else. SetBits is the number of its set bits.
	MayContain bool   `json:"may_contain"`
	SetBits    uint64 `json:"set_bits"`

	// Work is the number of hash states that were computed and compared; 0 from
	// Judge.
	Work uint64 `json:"work"`
}

// Bit is a bit of the filter that a lookup of the target tests.
type Bit struct {
	Index  uint64   `json:"index"`
	Hashes []string `json:"hashes"` // those with this index
}

// Name is a name for a list.
type Name struct {
	Name string   `json:"name"`
	Sets []uint64 `json:"sets"` // the target's bits that it sets, ascending
}

// Judge returns the effect of names on a target, with package hashfamily's functions
// and a real filter. A target that Search would refuse is an error, and so are
// names that would list the target, belong to its owner, or are not in normal form.
func Judge(target string, names []string) (*Result, error) {
	target, err := readTarget(target)
	if err != nil {
		return nil, err
	}
	family, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		return nil, err
	}
	filter, err := bloom.New(family)
	if err != nil {
		return nil, err
	}
	r := &Result{Target: target, Bits: bitsOf(family, target), Names: []Name{}}
	for _, name := range names {
		if err := checkName(name, target); err != nil {
			return nil, err
		}
		filter.Add([]byte(name))
		r.Names = append(r.Names, Name{name, setBy(family, name, r.Bits)})
	}
	r.MayContain, r.SetBits = filter.MayContain([]byte(target)), filter.SetBits()
	return r, nil
}

// bitsOf returns the bits that a lookup of key tests.
func bitsOf(family *hashfamily.Classic, key string) []Bit {
	var bits []Bit
	for i, index := range family.AppendIndices(nil, []byte(key)) {
		pos := slices.IndexFunc(bits, func(b Bit) bool { return b.Index == index })
		if pos < 0 {
			pos = len(bits)
			bits = append(bits, Bit{Index: index})
		}
		bits[pos].Hashes = append(bits[pos].Hashes, family.HashName(i))
	}
	return bits
}

// setBy returns the wanted bits that any hash of a name sets.
func setBy(family hashfamily.Family, name string, wanted []Bit) []uint64 {
	set := []uint64{}
	for _, index := range family.AppendIndices(nil, []byte(name)) {
		if slices.ContainsFunc(wanted, func(b Bit) bool { return b.Index == index }) {
			set = append(set, index)
		}
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// HashesOf returns the hashes whose bits of the target a name sets, in the family's
// order.
func (r *Result) HashesOf(n Name) []string {
	var hashes []string
	for _, h := range hashfamily.Hashes() {
		for _, b := range r.Bits {
			if slices.Contains(n.Sets, b.Index) && slices.Contains(b.Hashes, h.Name) {
				hashes = append(hashes, h.Name)
			}
		}
	}
	return hashes
}

// ListHead begins the lists that List returns, and identifies them.
const ListHead = "# hashlab attack --seed "

// List returns the names as a list file, each below a comment with the hashes whose
// bits it sets. The first line is the command that finds them.
func (r *Result) List() string {
	var b strings.Builder
	fmt.Fprintf(&b, ListHead+"%d %s\n", r.Seed, r.Target)
	for _, n := range r.Names {
		fmt.Fprintf(&b, "# %s\n%s\n", strings.Join(r.HashesOf(n), ", "), n.Name)
	}
	return b.String()
}
