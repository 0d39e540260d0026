package disposable

import "testing"

func TestDomains(t *testing.T) {
	domains := Domains()
	if len(domains) != Count {
		t.Fatalf("%d domains, want %d", len(domains), Count)
	}
	seen := make(map[string]bool, Count)
	for i, d := range domains {
		if len(d) == 0 || seen[string(d)] {
			t.Fatalf("line %d, %q: empty, or there before", i+1, d)
		}
		seen[string(d)] = true
	}
}
