package blocklist

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"unicode"

	"spamgate/blocklist/bloom"
)

// Similar counts false positives of the filter for names that resemble entries of the
// lists: entries that were changed in one way, and that no list holds.
type Similar struct {
	Change        string // what was changed, such as "one digit"
	Probes, False int
}

// Limits returns the limits of the false positive rate, with 95% confidence.
func (r Similar) Limits() (low, high float64) { return bloom.Limits(r.False, r.Probes) }

// Rate returns the measured false positive rate; 0 without probes.
func (r Similar) Rate() float64 { return float64(r.False) / float64(max(r.Probes, 1)) }

// Worst returns the change of entries with the highest rate: first by the lower limit,
// so that few probes do not count more than many.
func Worst(all []Similar) (worst Similar) {
	for i, r := range all {
		low, high := r.Limits()
		worstLow, worstHigh := worst.Limits()
		if r.Probes > 0 && (i == 0 || worst.Probes == 0 || low > worstLow || low == worstLow && high < worstHigh) {
			worst = r
		}
	}
	return worst
}

// change changes a key of a list of so many keys in place or by inserting, and reports
// whether it has.
type change func(key []byte, keys uint64, r *rand.Rand) ([]byte, bool)

// changes are the ways in which probes differ from entries. Classic hashes are not
// equally bad at all of them, so each has a count of its own.
var changes = []struct {
	what string
	do   change
}{
	{"one digit", changeDigit},
	{"a number", changeNumber},
	{"a number by a little", countOn},
	{"one letter", changeLetter},
	{"two swapped characters", swapCharacters},
}

// DefaultSimilarProbes is how often [Set.Probe] asks a live filter: 2^18 times for each
// way to change an entry. It takes about a second of processor time at ten million
// entries.
const DefaultSimilarProbes = 5 << 18

// MeasureSimilarFPR looks changed entries up in the filter that no list holds, about as
// many as probes in all, and returns how many passed for each way to change an entry. A
// way that no entry allows, such as digits in a list without, has no probes. The seed
// chooses entries and changes.
//
// Classic hashes of names that resemble each other are related, so that their rate may
// be many times that of random names ([Set.MeasureFPR]). Other lookups may go on
// meanwhile. These are not counted.
func (s *Set) MeasureSimilarFPR(ctx context.Context, probes int, seed uint64) ([]Similar, error) {
	p := &prober{set: s, r: rand.New(rand.NewPCG(seed, 0x73696d696c6172))}
	for _, c := range changes {
		p.tallies = append(p.tallies, Similar{Change: c.what})
	}
	keys := s.filter.keys
	for i := range s.lists {
		n := s.lists[i].index.keys()
		if n == 0 {
			continue
		}
		share := float64(probes) / float64(len(changes)) * float64(n) / float64(keys)
		if err := p.list(ctx, s.lists[i].index, int(math.Ceil(share))); err != nil {
			return nil, err
		}
	}
	return p.tallies, nil
}

// prober probes a filter with changed entries.
type prober struct {
	set     *Set
	r       *rand.Rand
	tallies []Similar
	batch   [][]byte // entries, reused
	probe   []byte
}

// proberBatch is how many entries are read before they are changed and asked.
const proberBatch = 1024

// list probes with changed entries of one list, about share times for each change. It
// reads entries from a random place of the index on, where they stand in the order of
// a keyed hash: a random sample. A list without enough entries is read again, but in
// all no more than four times as many entries as probes: the changes of a dense list,
// such as numbers in a row, mostly lead to other entries. A change that no entry of the
// list allows is not tried again.
func (p *prober) list(ctx context.Context, x *Index, share int) error {
	want := make([]int, len(changes))
	for i, t := range p.tallies {
		want[i] = t.Probes + share
	}
	allowed := make([]bool, len(changes))
	from := p.r.Uint64()
	for read, keys := 0, int(x.keys()); read < 4*share; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		next, n, err := p.read(x, from)
		if err != nil {
			return err
		}
		from, read = next, read+max(n, 1)
		done := true
		for i := range changes {
			for _, key := range p.batch[:n] {
				if p.tallies[i].Probes >= want[i] {
					break
				}
				changed, err := p.ask(i, key, x.keys())
				if err != nil {
					return err
				}
				allowed[i] = allowed[i] || changed
			}
			// The first batch may begin anywhere, so that all entries were read after two rounds.
			none := !allowed[i] && read >= 2*(keys+proberBatch)
			done = done && (none || p.tallies[i].Probes >= want[i])
		}
		if done {
			break
		}
	}
	return nil
}

// read reads the next entries from a hash on into the batch, and returns where to go on:
// at the beginning after the end.
func (p *prober) read(x *Index, from uint64) (next uint64, n int, err error) {
	err = x.segment.ScanKeys(from, ^uint64(0), func(hash uint64, key []byte) bool {
		if n == len(p.batch) {
			p.batch = append(p.batch, nil)
		}
		p.batch[n] = append(p.batch[n][:0], key...)
		n++
		next = hash + 1
		return n < proberBatch
	})
	if n < proberBatch {
		next = 0
	}
	return next, n, err
}

// ask asks the filter for one changed entry, unless a list holds it. It reports whether the
// entry allows the change.
func (p *prober) ask(i int, key []byte, keys uint64) (changed bool, err error) {
	probe, changed := changes[i].do(append(p.probe[:0], key...), keys, p.r)
	p.probe = probe
	if !changed {
		return false, nil
	}
	if p.set.filter.mayContain(probe) {
		held, err := p.set.holds(probe)
		if err != nil || held {
			return true, err
		}
		p.tallies[i].False++
	}
	p.tallies[i].Probes++
	return true, nil
}

// Probe measures the filter with changed entries, if its hashes may need that and it was
// not measured yet, and lets [Set.Stats] tell the result. It uses the default number
// of probes if given 0. An error leaves it unmeasured.
func (s *Set) Probe(ctx context.Context, probes int) error {
	f := s.filter
	if f.probed() != nil || !f.resembling() || f.keys == 0 {
		return nil
	}
	if probes == 0 {
		probes = DefaultSimilarProbes
	}
	similar, err := s.MeasureSimilarFPR(ctx, probes, similarSeed)
	if err == nil {
		f.similar.Store(&probed{similar, f.keys, f.setBits()})
	}
	return err
}

const similarSeed = 20260601 // any; always the same, so that two runs can be compared

// probed is the result of a [Set.Probe], and the size of the filter then.
type probed struct {
	similar       []Similar
	keys, setBits uint64
}

// nearlyEmpty is the largest fill ratio at which a filter without a false positive is
// not measured again: a short list changes by more than one key in 64 each time.
const nearlyEmpty = 1.0 / 1024

// holdsFor reports whether the result holds for a filter that has changed so little
// since: by less than one key or bit in 64, or in a nearly empty filter.
func (p *probed) holdsFor(f *setFilter) bool {
	bits := float64(f.bits())
	if Worst(p.similar).False == 0 && float64(max(p.setBits, f.setBits())) <= nearlyEmpty*bits {
		return true
	}
	near := func(a, b uint64) bool { return max(a, b)-min(a, b) <= min(a, b)/64 }
	return near(p.keys, f.keys) && near(p.setBits, f.setBits())
}

// takeProbes takes over what was measured in a previous filter, if that holds.
func (f *setFilter) takeProbes(previous []*Set) {
	for _, e := range previous {
		if e == nil || !e.filter.layout.same(f.layout) || e.filter.capacity != f.capacity {
			continue
		}
		if p := e.filter.probed(); p != nil && p.holdsFor(f) {
			f.similar.Store(p)
			return
		}
	}
}

// probed returns what was measured with changed entries; nil if nothing was.
func (f *setFilter) probed() *probed {
	if f.similar == nil {
		return nil
	}
	return f.similar.Load()
}

// resembling reports whether the filter's rate depends on what its keys look like.
func (f *setFilter) resembling() bool { return f.layout.Kind != KindFuse && !f.layout.spec.AnyKeys() }

// bits returns how many bits the filter has.
func (f *setFilter) bits() uint64 {
	switch {
	case f.bitmaps != nil:
		return f.bitmaps.M()
	case f.counting != nil:
		return f.counting.Filter().M()
	}
	return 0
}

// setBits returns how many bits of the filter are set.
func (f *setFilter) setBits() uint64 {
	switch {
	case f.bitmaps != nil:
		return f.bitmaps.SetBits()
	case f.counting != nil:
		return f.counting.Filter().SetBits()
	}
	return 0
}

// class has the characters that a change is for.
type class [256]bool

var digits, letters, alphanumerics = func() (d, l, both class) {
	for c := range both {
		d[c], l[c] = '0' <= c && c <= '9', 'a' <= c && c <= 'z'
		both[c] = d[c] || l[c]
	}
	return d, l, both
}()

// count returns how many characters of a text are in the class.
func (k *class) count(text []byte) (n int) {
	for _, c := range text {
		if k[c] {
			n++
		}
	}
	return n
}

// choose returns the place of a random character of a class: one before the @ of an
// address, or before the last dot of a domain, if there is any. So a changed name
// keeps its top-level domain, like the names that are looked up: BP depends on the last
// four bytes only.
func choose(key []byte, r *rand.Rand, want *class) (place int, ok bool) {
	end := bytes.IndexByte(key, '@')
	n := want.count(key[:max(end, 0)])
	if n == 0 {
		end = bytes.LastIndexByte(key, '.')
		n = want.count(key[:max(end, 0)])
	}
	if n == 0 {
		n = want.count(key)
	}
	if n == 0 {
		return 0, false
	}
	n = r.IntN(n)
	for !want[key[place]] || n > 0 {
		if want[key[place]] {
			n--
		}
		place++
	}
	return place, true
}

// changeDigit changes one digit.
func changeDigit(key []byte, _ uint64, r *rand.Rand) ([]byte, bool) {
	i, ok := choose(key, r, &digits)
	if ok {
		key[i] = '0' + (key[i]-'0'+byte(1+r.IntN(9)))%10
	}
	return key, ok
}

// changeLetter changes one letter.
func changeLetter(key []byte, _ uint64, r *rand.Rand) ([]byte, bool) {
	i, ok := choose(key, r, &letters)
	if ok {
		key[i] = 'a' + (key[i]-'a'+byte(1+r.IntN(25)))%26
	}
	return key, ok
}

// changeNumber replaces the digits of a number, and makes every second one a digit
// longer: the neighbours of numbers in a row are entries themselves.
func changeNumber(key []byte, _ uint64, r *rand.Rand) ([]byte, bool) {
	i, ok := choose(key, r, &digits)
	if !ok {
		return key, false
	}
	for i > 0 && digits[key[i-1]] {
		i--
	}
	for ; i < len(key) && digits[key[i]]; i++ {
		key[i] = '0' + byte(r.IntN(10))
	}
	if r.IntN(2) == 0 {
		key = slices.Insert(key, i, '0'+byte(r.IntN(10)))
	}
	return key, true
}

// countOn adds to a number: up to four times the number of keys, so that it leads past
// the last of numbers in a row. One of several numbers of up to three digits, such as
// those of an IP address in a host name, stays below 256.
func countOn(key []byte, keys uint64, r *rand.Rand) ([]byte, bool) {
	i, ok := choose(key, r, &digits)
	if !ok {
		return key, false
	}
	for i > 0 && digits[key[i-1]] {
		i--
	}
	end := i
	for end < len(key) && digits[key[end]] {
		end++
	}
	v, err := strconv.ParseUint(string(key[i:end]), 10, 48)
	if err != nil {
		return key, false
	}
	more := v + 1 + r.Uint64N(4*keys)
	others := bytes.ContainsFunc(key[:i], unicode.IsDigit) || bytes.ContainsFunc(key[end:], unicode.IsDigit)
	if others && end-i <= 3 && v < 256 {
		more = (v + 1 + r.Uint64N(255)) % 256
	}
	var text [20]byte
	number := strconv.AppendUint(text[:0], more, 10)
	zeros := 0
	if key[i] == '0' { // it is padded
		zeros = max(end-i-len(number), 0)
	}
	for j := range zeros {
		key[i+j] = '0'
	}
	return slices.Replace(key, i+zeros, end, number...), true
}

// swapCharacters swaps two different neighbours.
func swapCharacters(key []byte, _ uint64, r *rand.Rand) ([]byte, bool) {
	i, ok := choose(key, r, &alphanumerics)
	if !ok || i+1 == len(key) || key[i] == key[i+1] || !alphanumerics[key[i+1]] {
		return key, false
	}
	key[i], key[i+1] = key[i+1], key[i]
	return key, true
}
