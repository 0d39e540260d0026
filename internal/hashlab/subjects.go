package hashlab

import (
	"slices"
	"strconv"

	"spamgate/hashfamily"
)

// freeK is the number of index functions of families that are free to choose:
// as many as the classic family has, so that they can be compared.
const freeK = 11

// subject is a family, a single hash or a control with its number of index
// functions.
type subject struct {
	Subject
	k int

	// make makes it over m bits. Only a control of ideal hashes looks at seed.
	make func(seed, m uint64) (hashfamily.Family, error)
}

// group is subjects of equal k, whose rates can be compared.
type group struct {
	k        int
	subjects []subject
}

// choice is a family and its number of index functions.
type choice struct {
	spec hashfamily.Spec
	k    int
}

// ownChoice is what is compared where no families are named: all kinds. The
// weighted family has seven hashes, and double is measured beside it once more
// with as many.
var ownChoice = []struct {
	name string
	k    int // 0: the family's own, or freeK
}{
	{"classic", 0}, {"digest", 0}, {"double", 0}, {"double:murmur3", 0}, {"seeded", 0},
	{"classic9", 0},
	{"weighted", 0}, {"double", 7},
}

// choose reads the names of families; none are the laboratory's own choice.
// Names that mean one family count once.
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
		if !slices.ContainsFunc(all, func(c choice) bool { return c.k == k && c.spec.String() == spec.String() }) {
			all = append(all, choice{spec, k})
		}
		return nil
	}
	for _, name := range names {
		if err := take(name, 0); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		for _, own := range ownChoice {
			if err := take(own.name, own.k); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// groups puts the families with equal k together, in the order in which each k
// comes first, and the single hashes of the classic ones among them at k = 1.
// The controls stand at the end of every group.
func groups(families []choice) ([]group, error) {
	var all []group
	put := func(s subject) {
		at := slices.IndexFunc(all, func(g group) bool { return g.k == s.k })
		if at < 0 {
			at = len(all)
			all = append(all, group{k: s.k})
		}
		all[at].subjects = append(all[at].subjects, s)
	}
	var single []string // hashes of the classic families
	for _, c := range families {
		s := familySubject(c.spec.String(), KindFamily, c)
		f, err := s.make(0, minBits)
		if err != nil {
			return nil, err
		}
		classic, ok := f.(*hashfamily.Classic)
		if ok {
			for i := range classic.K() {
				single = append(single, classic.HashName(i))
			}
		}
		if !ok || c.k > 1 { // a family of one classic hash is that hash
			put(s)
		}
	}
	for _, h := range hashfamily.Hashes() {
		if !slices.Contains(single, h.Name) {
			continue
		}
		spec, err := hashfamily.ParseSpec("classic:" + h.Name)
		if err != nil {
			return nil, err
		}
		put(familySubject(h.Name, KindHash, choice{spec, 1}))
	}
	for i := range all {
		all[i].subjects = append(all[i].subjects, controlSubjects(all[i].k)...)
	}
	return all, nil
}

// familySubject is a family, or a hash alone, as a subject.
func familySubject(name, kind string, c choice) subject {
	return subject{Subject: Subject{name, kind}, k: c.k, make: func(_, m uint64) (hashfamily.Family, error) {
		return c.spec.New(hashfamily.Params{M: m, K: c.k, Key: publicKey[:]})
	}}
}

// hashName is what the i-th function of a family is called: its number from 0
// where it has no name.
func hashName(f hashfamily.Family, i int) string {
	if named, ok := f.(interface{ HashName(i int) string }); ok {
		return named.HashName(i)
	}
	return strconv.Itoa(i)
}

// controlSubjects are the two that stand in every table.
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

// hashes are the single hashes that belong to the run's families, and the
// controls.
func (l *lab) hashes() []hashSubject {
	wanted := map[string]bool{Ideal: true, XXH3: true}
	for _, c := range l.families {
		switch name := c.spec.String(); {
		case name == "double":
			wanted["HighwayHash"] = true
		case name == "double:murmur3":
			wanted["Murmur3"] = true
		}
	}
	for _, g := range l.groups {
		for _, s := range g.subjects {
			wanted[s.Name] = wanted[s.Name] || s.Kind == KindHash
		}
	}
	return slices.DeleteFunc(hashSubjects(l.options.Seed), func(h hashSubject) bool { return !wanted[h.Name] })
}

// makers make each family once, and the controls with as many functions as the
// first family has.
func (l *lab) makers() []familyMaker {
	var all []familyMaker
	seen := make(map[string]bool)
	put := func(s subject) {
		if !seen[s.Name] {
			seen[s.Name] = true
			all = append(all, func(m uint64) (hashfamily.Family, error) { return s.make(l.options.Seed, m) })
		}
	}
	for _, c := range l.families {
		put(familySubject(c.spec.String(), KindFamily, c))
	}
	for _, s := range controlSubjects(l.families[0].k) {
		put(s)
	}
	return all
}

// makeAll makes all of makers over m bits.
func (l *lab) makeAll(m uint64) ([]hashfamily.Family, error) {
	var all []hashfamily.Family
	for _, create := range l.makers() {
		f, err := create(m)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}
