// Package recent has a map of bounded size that keeps what was used lately.
package recent

// Map is a map with a bound. It has two halves: when the newer one is full it becomes the
// older one, and the previous older one is dropped, except for the entries that were used
// again. That costs nothing per use, unlike a list in order of use. A Map is not safe for
// concurrent use.
type Map[K comparable, V any] struct {
	half         int
	newer, older map[K]V
}

// New returns a Map of at most max entries.
func New[K comparable, V any](max int) *Map[K, V] {
	return &Map[K, V]{half: max / 2, newer: map[K]V{}}
}

// Get returns the value of a key and whether there is one. It counts as a use.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.newer[key]
	if !ok {
		if v, ok = m.older[key]; ok {
			m.Put(key, v)
		}
	}
	return v, ok
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	if _, ok := m.newer[key]; !ok && len(m.newer) >= m.half {
		m.older, m.newer = m.newer, map[K]V{}
	}
	m.newer[key] = value
}

// Len returns the number of entries; one that is in both halves counts twice.
func (m *Map[K, V]) Len() int { return len(m.newer) + len(m.older) }
