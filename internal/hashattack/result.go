package hashattack

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Result is what a search found.
type Result struct {
	Target string `json:"target"` // in normal form
	Seed   uint64 `json:"seed"`
	Bits   []Bit  `json:"bits"` // those that the target asks for, in the order of the hashes
	Names  []Name `json:"names"`

	// MayContain is the answer of a real filter of 2^28 bits that holds the
	// names and nothing else, asked for the target. SetBits is how many of its
	// bits are set.
	MayContain bool   `json:"may_contain"`
	SetBits    uint64 `json:"set_bits"`

	// Work is how many hash states were computed and compared; 0 from Judge.
	Work uint64 `json:"work"`
}

// Bit is a bit of the filter that a look-up of the target asks for.
type Bit struct {
	Index  uint64   `json:"index"`
	Hashes []string `json:"hashes"` // those that ask for it
}

// Name is a name to be listed.
type Name struct {
	Name string   `json:"name"`
	Sets []uint64 `json:"sets"` // the target's bits that it sets, ascending
}

// Judge says what names do to a target, by hashfamily's own functions and a real
// filter. It refuses a target that Search would refuse, and names that would
// list the target, are its owner's, or cannot be listed as they are.
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

// bitsOf are the bits that a look-up of key asks for.
func bitsOf(family *hashfamily.Classic, key string) []Bit {
	var found []Bit
	for i, index := range family.AppendIndices(nil, []byte(key)) {
		at := slices.IndexFunc(found, func(b Bit) bool { return b.Index == index })
		if at < 0 {
			at = len(found)
			found = append(found, Bit{Index: index})
		}
		found[at].Hashes = append(found[at].Hashes, family.HashName(i))
	}
	return found
}

// setBy is which of the wanted bits a name sets, by whichever of its hashes.
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

// HashesOf is the names of the hashes whose bits of the target a name sets, in
// the family's order.
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

// ListHead begins what List returns, and so tells its lists from others.
const ListHead = "# spamgate hashes attack --seed "

// List is the names as a list file, each below a comment with the hashes whose
// bits it sets. Its first line is the command that finds them.
func (r *Result) List() string {
	var b strings.Builder
	fmt.Fprintf(&b, ListHead+"%d %s\n", r.Seed, r.Target)
	for _, n := range r.Names {
		fmt.Fprintf(&b, "# %s\n%s\n", strings.Join(r.HashesOf(n), ", "), n.Name)
	}
	return b.String()
}
