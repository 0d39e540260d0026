package blocklist

import (
	"strings"
	"testing"

	"spamgate/hashfamily"
)

// A list that outgrows entries = … grows the filter by half, once, and not by a
// key at each line that is added. A shard has room for 1,000 keys here.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		kind                Kind
		entries, keys, room uint64
	}{
		{KindCounting, 0, 0, minCapacity},
		{KindCounting, 0, minCapacity, minCapacity * 3 / 2},
		{KindCounting, 5, 4, 5},
		{KindCounting, 30_000, 0, 30_000},
		{KindCounting, 30_000, 30_000, 30_000},
		{KindCounting, 300_000, 300_001, 450_001},
		{KindSized, 5, 6, minCapacity},
		{KindSized, 0, 90_000_000, 135_000_000},
		{KindSized, 0, 100_000_000, 125_000_000}, // with 150 million it would be too large
		{KindSized, 0, 149_000_000, 149_000_000},
		{KindClassic, 0, 0, 1000},
		{KindClassic, 5, 1_000_000, 1000},
		{KindAuto, 0, 0, 1000},
		{KindAuto, 0, 1000, 1000},
		{KindAuto, 0, 1001, 2000},
		{KindAuto, 0, 1700, 3000},
		{KindSharded, 0, 0, 1000},
		{KindSharded, 0, 800, 1000},
		{KindSharded, 0, 801, 2000},
		{KindSharded, 5500, 10, 6000},
		{KindSharded, 5500, 5501, 7000},
		{KindFuse, 0, 77, 77},
	} {
		l := layoutOf(t, Filter{Kind: c.kind, Entries: c.entries})
		l.classicBits = 15_870 // 11·1000/ln 2
		if room := l.capacity(c.keys); room != c.room {
			t.Errorf("%s, entries = %d, %d keys: room for %d, want %d", c.kind, c.entries, c.keys, room, c.room)
		}
		if l.Kind != KindFuse && !l.fits(c.room, min(c.keys, c.room)) {
			t.Errorf("%s, entries = %d, %d keys: a room of %d does not fit", c.kind, c.entries, c.keys, c.room)
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	for _, c := range []struct {
		f    Filter
		says string
	}{
		{Filter{Kind: "cuckoo"}, "use classic, sharded, sized, counting, fuse and auto"},
		{Filter{Family: "double"}, "kind classic takes no hash family double: use classic or some of its hashes, or one of the kinds sized and counting"},
		{Filter{Kind: KindSharded, Family: "seeded"}, "one of the kinds sized and counting"},
		{Filter{Kind: KindAuto, Family: "weighted"}, "one of the kinds sized and counting"},
		{Filter{Kind: KindFuse, Family: "double"}, "leave the family out"},
		{Filter{Family: "quantum"}, "quantum"},
		{Filter{Kind: KindSized, FPR: 1}, "1e-12 to 0.5"},
		{Filter{Kind: KindFuse, FPR: -1}, "1e-12 to 0.5"},
		{Filter{Kind: KindFuse, FPR: 2e-10}, "2.3e-10 at best"},
		{Filter{Kind: KindSized, Family: "seeded", FPR: 1e-6}, "seeded"},
		{Filter{Kind: KindSized, Entries: 1 << 40}, "use fewer keys, a higher rate"},
		{Filter{Kind: KindCounting, CounterBits: 5}, "4, 8 or 16"},
	} {
		if err := c.f.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v; want an error that says %q", c.f, err, c.says)
		}
	}
}

// A room that is not what entries = … asks for does not fit, however good it is.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		entries, room, keys uint64
		fits                bool
	}{
		{0, 200_000, 200_000, true},
		{0, 200_000, 200_001, false},
		{0, 200_000, 10, true},
		{0, 400_000, 67_000, true},
		{0, 400_000, 66_000, false},
		{500_000, 500_000, 10, true},
		{500_000, 600_000, 10, false},
		{500_000, 600_000, 500_001, true},
	} {
		if fits := layoutOf(t, Filter{Kind: KindSized, Entries: c.entries}).fits(c.room, c.keys); fits != c.fits {
			t.Errorf("entries = %d, %d keys in a room of %d: %t", c.entries, c.keys, c.room, fits)
		}
	}
}

// Each kind takes its default family, and no other family than it says.
func TestFamilies(t *testing.T) {
	for _, kind := range Kinds() {
		if err := (Filter{Kind: kind}).Validate(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for _, name := range []string{"classic", "classic9", "classic:RS", "weighted", "digest", "double", "double:murmur3", "seeded:7"} {
			spec, err := hashfamily.ParseSpec(name)
			if err != nil {
				t.Fatal(err)
			}
			err = Filter{Kind: kind, Family: name, FPR: 1e-3}.Validate()
			if (err == nil) != kind.TakesFamily(spec) {
				t.Errorf("%s with %s: %v", kind, name, err)
			}
		}
	}
}
