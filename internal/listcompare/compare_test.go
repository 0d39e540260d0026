package listcompare

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
)

// randomList returns the lines of a list by their keys. The few names make most lists share
// entries, and cover some of each other's.
func randomList(r *rand.Rand) map[string]string {
	lines := map[string]string{}
	for range 30 {
		domain := fmt.Sprintf("d%d.example", r.IntN(4))
		if r.IntN(2) == 0 {
			domain = fmt.Sprintf("s%d.%s", r.IntN(3), domain)
		}
		key := []string{domain, "@" + domain, "*." + domain, fmt.Sprintf("u%d@%s", r.IntN(3), domain), fmt.Sprintf("u%d@", r.IntN(3))}[r.IntN(5)]
		line := key
		if r.IntN(8) == 0 {
			line = "!" + key
		}
		lines[key] = line + fmt.Sprintf(" # reason %d", r.IntN(2))
	}
	return lines
}

func build(t *testing.T, key *segment.Key, lines map[string]string) *segment.Segment {
	t.Helper()
	b := listfiles.NewBuilder(t.Context(), key)
	text := strings.Join(slices.Sorted(maps.Values(lines)), "\n") + "\n"
	if _, err := b.Add(strings.NewReader(text), listfile.Options{}); err != nil {
		t.Fatal(err)
	}
	s, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOverlap compares the counts with those that nested loops find.
func TestOverlap(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		key := listfiles.NewKey()
		var lists []*listfiles.List
		var lines []map[string]string
		for i, kind := range []string{"block", "block", "allow", "allow"} {
			lists = append(lists, &listfiles.List{List: config.List{Name: fmt.Sprint("l", i), Type: kind, Stage: []string{"envelope"}, Override: i == 3}})
			list := randomList(r)
			if kind == "allow" { // which has no exceptions
				maps.DeleteFunc(list, func(_, line string) bool { return line[0] == '!' })
			}
			lines = append(lines, list)
		}
		p := NewOverlap(lists, key)
		for _, l := range lines {
			p.Add(build(t, key, l))
		}
		if err := p.Compare(t.Context(), func(float64) {}); err != nil {
			t.Fatal(err)
		}
		report := p.Report("")
		got := map[string]uint64{}
		for _, c := range report.Common {
			got[c.A+" and "+c.B] = c.Entries
		}
		for _, c := range report.Within {
			got[c.List+" by "+c.By] = c.Entries
		}
		if want := plainOverlap(lists, lines); !maps.Equal(got, want) {
			t.Fatalf("seed %d:\n got %v\nwant %v", seed, got, want)
		}
	}
}

// plainOverlap is the plain twin of Overlap.
func plainOverlap(lists []*listfiles.List, lines []map[string]string) map[string]uint64 {
	counts := map[string]uint64{}
	has := func(list int, key string) bool {
		line, ok := lines[list][key]
		return ok && line[0] != '!'
	}
	for i := range lists {
		for key := range lines[i] {
			if !has(i, key) {
				continue
			}
			covering := listfile.Covering(key, listfile.KindOf(key))
			for j := range lists {
				if j > i && has(j, key) {
					counts[lists[i].Name+" and "+lists[j].Name]++
				}
				if lists[i].Type == lists[j].Type && !(lists[i].Override && !lists[j].Override) {
					for _, by := range append([]string{key}, covering...) {
						if line, ok := lines[j][by]; ok && (by != key || line[0] == '!') {
							if line[0] != '!' {
								counts[lists[i].Name+" by "+lists[j].Name]++
							}
							break
						}
					}
				}
			}
		}
	}
	return counts
}

// TestDiff compares the differences with those of two maps.
func TestDiff(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		before, after := randomList(r), randomList(r)
		var want Diff
		for key, line := range before {
			switch current, ok := after[key]; {
			case !ok:
				want.Went++
			case current != line:
				want.Changed++
			default:
				want.Same++
			}
		}
		want.Came = len(after) - want.Changed - want.Same
		key := listfiles.NewKey()
		var got Diff
		if err := got.Compare(build(t, key, before), build(t, key, after), key); err != nil {
			t.Fatal(err)
		}
		if got.Came != want.Came || got.Went != want.Went || got.Changed != want.Changed || got.Same != want.Same {
			t.Fatalf("seed %d: %d came, %d went, %d changed, %d same; want %d, %d, %d, %d", seed,
				got.Came, got.Went, got.Changed, got.Same, want.Came, want.Went, want.Changed, want.Same)
		}
		for _, d := range got.Differences {
			entryInfo := d.New
			if entryInfo == nil {
				entryInfo = d.Old
			}
			k := strings.TrimPrefix(entryInfo.Entry, "!")
			old, hadOld := before[k]
			current, hasNow := after[k]
			what := map[[2]bool]string{{true, false}: "went", {false, true}: "came", {true, true}: "changed"}[[2]bool{hadOld, hasNow}]
			if d.What != what || old == current {
				t.Fatalf("seed %d: %s is said to have %s", seed, entryInfo.Entry, d.What)
			}
		}
	}
}
