package hashlab

import "testing"

// Different numbers have different keys, and the example looks like one.
func TestNameSets(t *testing.T) {
	for _, s := range NameSets() {
		locate, again, seen := s.New(1), s.New(1), map[string]bool{}
		for i := range uint64(50_000) {
			key := string(locate(nil, i*41))
			if seen[key] {
				t.Fatalf("%s: %q stands twice", s.Name, key)
			}
			seen[key] = true
			if other := string(again(nil, i*41)); other != key {
				t.Fatalf("%s: %q, and %q with the same seed", s.Name, key, other)
			}
		}
	}
	last := NameSets()[5]
	if got := string(last.New(0)(nil, 1)); got != "user00000001@example.com" || last.Example != got {
		t.Errorf("%q, and the example is %q", got, last.Example)
	}
}
