package bloom

import (
	"bytes"
	"fmt"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

// model is what a Counting has to hold: how often each key was added, and a
// counter for each position, in plain maps.
type model struct {
	family hashfamily.Family
	most   int
	keys   map[string]int
	counts map[uint64]int
}

func newModel(family hashfamily.Family, counterBits int) *model {
	return &model{family, 1<<counterBits - 1, make(map[string]int), make(map[uint64]int)}
}

// change adds the key for by = 1 and removes it for by = -1.
func (m *model) change(key []byte, by int) {
	m.keys[string(key)] += by
	positions := make(map[uint64]bool)
	for i := range m.family.K() {
		positions[m.family.Index(i, key)] = true
	}
	for i := range positions {
		if m.counts[i] < m.most { // saturated counters stay
			m.counts[i] += by
		}
	}
}

// check compares all counters, bits and sums with the model, and asks for all
// members.
func (m *model) check(t *testing.T, c *Counting) {
	t.Helper()
	saturated := uint64(0)
	set := make(map[uint64]bool)
	for i, n := range m.counts {
		if n > 0 {
			set[i] = true
		}
		if n == m.most {
			saturated++
		}
		if got := int(c.counters.at(i)); got != n {
			t.Errorf("%s, m=%d: counter %d is %d, want %d", m.family.Name(), m.family.M(), i, got, n)
		}
	}
	checkBitmap(t, c.Filter(), set)
	if c.Saturated() != saturated {
		t.Errorf("%s, m=%d: %d saturated counters, want %d", m.family.Name(), m.family.M(), c.Saturated(), saturated)
	}
	for key, n := range m.keys {
		if n > 0 && !c.MayContain([]byte(key)) {
			t.Errorf("%s, m=%d: %q was added %d times more than removed and is denied", m.family.Name(), m.family.M(), key, n)
		}
	}
}

func TestClone(t *testing.T) {
	for _, family := range allFamilies(t, 4096) {
		c, want := newCounting(t, family, DefaultCounterBits), newModel(family, DefaultCounterBits)
		keys := disposable.Domains()[:40]
		for _, key := range keys[:20] {
			c.Add(key)
			want.change(key, 1)
		}
		clone := c.Clone()
		want.check(t, clone)
		for _, key := range keys {
			clone.Add(key)
		}
		for _, key := range keys[:10] {
			clone.Remove(key)
			clone.Remove(key)
		}
		want.check(t, c)
	}
}

// FuzzCounting does what the bytes say to a filter of each family and to the
// model: each byte is a key of 64, and to add it or, if it is there, to remove it.
func FuzzCounting(f *testing.F) {
	f.Add(uint16(60), uint8(0), []byte("\x01\x02\x03\x81\x82\x83\x83"))
	f.Add(uint16(4095), uint8(1), bytes.Repeat([]byte{7}, 300))
	f.Add(uint16(0), uint8(2), append(bytes.Repeat([]byte{9}, 20), bytes.Repeat([]byte{0x89}, 25)...))
	f.Fuzz(func(t *testing.T, bits uint16, width uint8, steps []byte) {
		counterBits := 4 << (width % 3)
		for _, family := range allFamilies(t, 1+uint64(bits)) {
			c, want := newCounting(t, family, counterBits), newModel(family, counterBits)
			for _, step := range steps {
				key := fmt.Append(nil, "user", step&63, "@example.com")
				switch {
				case step&0x80 == 0:
					c.Add(key)
					want.change(key, 1)
				case want.keys[string(key)] > 0:
					if !c.Remove(key) {
						t.Fatalf("%s: Remove refuses %q, which is there", family.Name(), key)
					}
					want.change(key, -1)
				}
			}
			want.check(t, c)
		}
	})
}
