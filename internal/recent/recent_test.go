package recent

import "testing"

// TestMap puts ten times as many keys as there is room for, and uses one of them always.
func TestMap(t *testing.T) {
	const bound = 100
	m := New[int, string](bound)
	m.Put(-1, "used")
	for i := range 10 * bound {
		m.Put(i, "new")
		if v, ok := m.Get(-1); !ok || v != "used" {
			t.Fatalf("after %d keys the one in use is %q, %v", i, v, ok)
		}
		if v, ok := m.Get(i); !ok || v != "new" {
			t.Fatalf("key %d is %q, %v", i, v, ok)
		}
		if m.Len() > bound {
			t.Fatalf("%d entries, want %d at most", m.Len(), bound)
		}
	}
	if _, ok := m.Get(0); ok {
		t.Error("the oldest key is there still")
	}
	if m.Put(-1, "again"); m.Len() > bound {
		t.Errorf("%d entries", m.Len())
	}
	if v, _ := m.Get(-1); v != "again" {
		t.Errorf("the new value is %q", v)
	}
}
