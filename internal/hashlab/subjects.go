package hashlab

import (
	"fmt"
	"slices"
	"strconv"

	"spamgate/hashfamily"
)

// freeK is the number of index functions of families that allow any: that of the
// classic family, for comparison.
const freeK = 11

// subject is a family, a single hash or a control with its number of index
// functions.
type subject struct {
	Subject
	k int

	// make returns it over m bits. Only the ideal control depends on seed.
	make func(seed, m uint64) (hashfamily.Family, error)

	fixed bool // as in choice
}

// group is subjects of equal k, whose rates can be compared.
type group struct {
	k        int
	subjects []subject
}

// choice is a family and its number of index functions.
type choice struct {
	name string
	k    int
	make func(m uint64) (hashfamily.Family, error)

	// fixed is set if the family has indices for the keys of the corpus only.
	fixed bool
}

// choiceOf returns a family of package hashfamily under the public key.
func choiceOf(spec hashfamily.Spec, k int) choice {
	return choice{name: spec.String(), k: k, make: func(m uint64) (hashfamily.Family, error) {
		return spec.New(hashfamily.Params{M: m, K: k, Key: publicKey[:]})
	}}
}

// defaultFamilies are the families that a run without names compares: all kinds.
// The weighted family has seven hashes, so double is measured with seven, too.
var defaultFamilies = []struct {
	name string
	k    int // 0: the family's own, or freeK
}{
	{"classic", 0}, {"digest", 0}, {"double", 0}, {"double:murmur3", 0}, {"seeded", 0},
	{"classic9", 0},
	{"weighted", 0}, {"double", 7},
}

// choose parses the names of families; without names it returns the default ones.
// Different names of one family count once.
func choose(names []string) ([]choice, error) {
	var all []choice
	take := func(name string, k int) error {
		spec, err := hashfamily.ParseSpec(name)
		if err != nil {
			return err
		}
		if k == 0 {
			k = spec.K()
		}
		if k == 0 {
			k = min(freeK, spec.MaxK())
		}
		if !slices.ContainsFunc(all, func(c choice) bool { return c.k == k && c.name == spec.String() }) {
			all = append(all, choiceOf(spec, k))
		}
		return nil
	}
	for _, name := range names {
		if err := take(name, 0); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		for _, own := range defaultFamilies {
			if err := take(own.name, own.k); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// withOwn adds the caller's families, and for comparison double hashing with as many
// functions.
func withOwn(all []choice, own []Family) ([]choice, error) {
	double, err := hashfamily.ParseSpec("double")
	if err != nil {
		return nil, err
	}
	for _, f := range own {
		if f.K < 1 || f.K > MaxOwnK || f.Name == "" || slices.ContainsFunc(all, func(c choice) bool { return c.name == f.Name }) {
			return nil, fmt.Errorf("family %q with %d functions: it needs a name of its own and 1 to %d functions", f.Name, f.K, MaxOwnK)
		}
		all = append(all, choice{f.Name, f.K, f.New, f.Fixed})
		if !slices.ContainsFunc(all, func(c choice) bool { return c.k == f.K && c.name == "double" }) {
			all = append(all, choiceOf(double, f.K))
		}
	}
	return all, nil
}

// groups returns the families in groups of equal k, in the order of the first of
// each, and at k = 1 the single hashes of the classic families and the other ones.
// Every group ends with the controls.
func groups(families []choice, others ...hashSubject) ([]group, error) {
	var subjects []subject
	single := make(map[string]bool) // hashes of the classic families
	for _, c := range families {
		s := familySubject(c.name, KindFamily, c)
		f, err := s.make(0, minBits)
		if err != nil {
			return nil, err
		}
		classic, ok := f.(*hashfamily.Classic)
		if ok {
			for i := range classic.K() {
				single[classic.HashName(i)] = true
			}
		}
		if !ok || c.k > 1 { // a family of one classic hash is that hash
			subjects = append(subjects, s)
		}
	}
	for _, h := range hashfamily.Hashes() {
		if !single[h.Name] {
			continue
		}
		spec, err := hashfamily.ParseSpec("classic:" + h.Name)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, familySubject(h.Name, KindHash, choiceOf(spec, 1)))
	}
	for _, h := range others {
		subjects = append(subjects, subject{Subject: h.Subject, k: 1, make: func(_, m uint64) (hashfamily.Family, error) {
			return loneHash{h.Name, h.sum, m}, nil
		}})
	}
	var all []group
	for _, g := range Groups(subjects, func(s subject) int { return s.k }) {
		all = append(all, group{g[0].k, append(g, controlSubjects(g[0].k)...)})
	}
	return all, nil
}

// familySubject returns a family, or a single hash, as a subject.
func familySubject(name, kind string, c choice) subject {
	return subject{Subject: Subject{name, kind}, k: c.k, fixed: c.fixed, make: func(_, m uint64) (hashfamily.Family, error) { return c.make(m) }}
}

// loneHash is a single hash as a family.
type loneHash struct {
	name string
	sum  func(key []byte) uint64
	m    uint64
}

func (h loneHash) Name() string                   { return h.name }
func (h loneHash) HashName(int) string            { return h.name }
func (h loneHash) K() int                         { return 1 }
func (h loneHash) M() uint64                      { return h.m }
func (h loneHash) Index(_ int, key []byte) uint64 { return h.sum(key) % h.m }

func (h loneHash) AppendIndices(dst []uint64, key []byte) []uint64 {
	return append(dst, h.Index(0, key))
}

// hashName returns the name of the i-th function of a family, or its number from 0.
func hashName(f hashfamily.Family, i int) string {
	if named, ok := f.(interface{ HashName(i int) string }); ok {
		return named.HashName(i)
	}
	return strconv.Itoa(i)
}

// controlSubjects returns the two controls, which are in every table.
func controlSubjects(k int) []subject {
	return []subject{
		{Subject: Subject{Ideal, KindControl}, k: k, make: func(seed, m uint64) (hashfamily.Family, error) {
			return newIdeal(seed, m, k), nil
		}},
		{Subject: Subject{XXH3, KindControl}, k: k, make: func(_, m uint64) (hashfamily.Family, error) {
			return newXXH3(m, k), nil
		}},
	}
}

// hashes returns the single hashes that belong to the run's families, and the
// controls.
func (l *lab) hashes() []hashSubject {
	wanted := map[string]bool{Ideal: true, XXH3: true}
	for _, c := range l.families {
		switch c.name {
		case "double":
			wanted["HighwayHash"] = true
		case "double:murmur3":
			wanted["Murmur3"] = true
		}
	}
	for _, g := range l.groups {
		for _, s := range g.subjects {
			wanted[s.Name] = wanted[s.Name] || s.Kind == KindHash
		}
	}
	all := Filter(hashSubjects(l.options.Seed), func(h hashSubject) bool { return wanted[h.Name] })
	controls := slices.IndexFunc(all, func(h hashSubject) bool { return h.Kind == KindControl })
	return slices.Insert(all, controls, l.others...)
}

// makers returns a maker for each family, and for the controls with as many
// functions as the first family.
func (l *lab) makers() []familyMaker {
	var subjects []subject
	for _, c := range l.families {
		subjects = append(subjects, familySubject(c.name, KindFamily, c))
	}
	var all []familyMaker
	for _, g := range Groups(append(subjects, controlSubjects(l.families[0].k)...), func(s subject) string { return s.Name }) {
		all = append(all, func(m uint64) (hashfamily.Family, error) { return g[0].make(l.options.Seed, m) })
	}
	return all
}

// makeAll returns the families of all makers over m bits that can hash any key.
func (l *lab) makeAll(m uint64) ([]hashfamily.Family, error) {
	var all []hashfamily.Family
	for _, create := range l.makers() {
		f, err := create(m)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(l.families, func(c choice) bool { return c.fixed && c.name == f.Name() }) {
			continue
		}
		all = append(all, f)
	}
	return all, nil
}
