package bloom

import (
	"slices"
	"testing"

	"spamgate/hashfamily"
)

// passes counts the keys whose bit for the i-th index function is set.
func passes(f *Filter, i int, keys [][]byte) int {
	count := 0
	for _, key := range keys {
		if b := f.family.Index(i, key); f.bits[b>>3]&(1<<(b&7)) != 0 {
			count++
		}
	}
	return count
}

// TestProbeOrder holds what probeRank rests on, and prints it with -v. The
// times are BenchmarkProbe's.
func TestProbeOrder(t *testing.T) {
	f := listFilter(t, ClassicBits)
	keys := absentKeys(t, 50_000)
	bytes := 0
	for _, key := range keys {
		bytes += len(key)
	}
	t.Logf("%d absent keys of %.1f bytes, fill ratio %.4f", len(keys), float64(bytes)/float64(len(keys)), f.FillRatio())
	pass := make(map[string]float64)
	for i, h := range hashfamily.Hashes() {
		pass[h.Name] = float64(passes(f, i, keys)) / float64(len(keys))
		t.Logf("%-4s passes %.4f", h.Name, pass[h.Name])
	}

	for _, name := range probeRank[:8] {
		if p := pass[name]; p > 1.15*f.FillRatio() {
			t.Errorf("%s passes %.4f of the absent keys at a fill ratio of %.4f: it is no good in front", name, p, f.FillRatio())
		}
	}
	if pass["BP"] < 0.5 {
		t.Errorf("BP passes only %.4f of the absent keys: it need not be last", pass["BP"])
	}
	if probeRank[len(probeRank)-1] != "BP" {
		t.Error("BP is not last")
	}
}

func TestProbeOrderOfSubset(t *testing.T) {
	names := []string{"BP", "RS", "PJW", "AP", "FNV"}
	family, err := hashfamily.NewClassic(64, names...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range probeOrder(family) {
		got = append(got, names[i])
	}
	if want := []string{"FNV", "RS", "AP", "PJW", "BP"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// TestProbeOrderIsComplete guards against a hash that is never asked: that
// would be no false negative, but more false positives.
func TestProbeOrderIsComplete(t *testing.T) {
	order := slices.Clone(newClassic(t, ClassicBits).probes)
	slices.Sort(order)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(order, want) {
		t.Errorf("probes %v, want each of %v", order, want)
	}
}
