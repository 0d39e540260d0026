package hashattack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/bloom"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/hashfamily"
)

// fullEnv names the environment variable of the long tests: with it all sets of
// testdata are searched again.
const fullEnv = "SPAMGATE_E2E_FULL"

// sets returns the lists of testdata/sets by target. Each was written by the command
// that its first line names.
func sets(t *testing.T) map[string]string {
	files, err := filepath.Glob("testdata/sets/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sets: %v", err)
	}
	lists := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lists[strings.TrimSuffix(filepath.Base(file), ".txt")] = string(text)
	}
	return lists
}

// namesOf returns the entries of a list.
func namesOf(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.TrimSpace(line))
		}
	}
	return names
}

// TestSetsFoolTheFilter judges the known sets at full size.
func TestSetsFoolTheFilter(t *testing.T) {
	for target, list := range sets(t) {
		r, err := Judge(target, namesOf(list))
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		r.Seed = 1
		if !r.MayContain || len(r.Names) != len(teams) {
			t.Errorf("%s: %d names, MayContain %v", target, len(r.Names), r.MayContain)
		}
		if r.List() != list {
			t.Errorf("%s:\n%s\nwant\n%s", target, r.List(), list)
		}
		var hashes []string
		for _, n := range r.Names {
			hashes = append(hashes, r.HashesOf(n)...)
		}
		for _, h := range hashfamily.Hashes() {
			if !slices.Contains(hashes, h.Name) {
				t.Errorf("%s: no name has %s", target, h.Name)
			}
		}
		// Each name is needed: two of the three do not do.
		for i := range r.Names {
			two, err := Judge(target, slices.Delete(namesOf(list), i, i+1))
			if err != nil || two.MayContain {
				t.Errorf("%s: without name %d: %v, %v", target, i, two.MayContain, err)
			}
		}
	}
}

// TestGateConfirms gives the known sets to the gate as lists: with confirmation
// the target is nobody's entry, without it is one.
func TestGateConfirms(t *testing.T) {
	for target := range sets(t) {
		file, err := filepath.Abs(filepath.Join("testdata", "sets", target+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		address, err := sender.Parse("user@" + target)
		if err != nil {
			t.Fatal(err)
		}
		config := store.Config{
			Lists: []store.List{{Name: "attack", Paths: []string{file}, Type: blocklist.Block, Action: verdict.Reject}},
		}
		set, _, err := store.Build(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := set.Lookup(verdict.Envelope, address); err != nil || d.Action != verdict.Accept || set.FalsePositives() != 1 {
			t.Errorf("%s, confirmed: %s, %v, %d false positives; want accept and 1", target, d.Action, err, set.FalsePositives())
		}
		config.FilterOnly = true
		if set, _, err = store.Build(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		if d, err := set.Lookup(verdict.Envelope, address); err != nil || d.Action != verdict.Reject {
			t.Errorf("%s, not confirmed: %s, %v, want reject", target, d.Action, err)
		}
	}
}

// TestSearchTeam searches one name of a known set again.
func TestSearchTeam(t *testing.T) {
	if testing.Short() {
		t.Skip("a search takes some seconds")
	}
	const target = "example.com"
	team := len(teams) - 1
	tower := newTower(teams[team], target, map[int]*pool{3: words(3), 4: words(4)}, 1)
	name, err := tower.search(t.Context())
	if want := namesOf(sets(t)[target])[team]; err != nil || name != want || tower.work == 0 {
		t.Errorf("%q, %v; want %q", name, err, want)
	}
}

// TestSearch searches all known sets again, one on one processor, the next on all.
func TestSearch(t *testing.T) {
	if os.Getenv(fullEnv) == "" {
		t.Skipf("takes minutes: set %s", fullEnv)
	}
	all, single := runtime.GOMAXPROCS(0), false
	defer runtime.GOMAXPROCS(all)
	for target, list := range sets(t) {
		if single = !single; single {
			runtime.GOMAXPROCS(1)
		} else {
			runtime.GOMAXPROCS(all)
		}
		last := 0
		r, err := Search(t.Context(), Options{Target: target, Seed: 1, Progress: func(done, total int) {
			if done != last+1 || total != len(teams)*towerSteps || done > total {
				t.Errorf("%s: step %d of %d after %d", target, done, total, last)
			}
			last = done
		}})
		if err != nil || r.List() != list || !r.MayContain || r.Work == 0 {
			t.Errorf("%s: %v, found\n%s\nwant\n%s", target, err, r.List(), list)
		}
	}
}

func TestSearchRefusesTargets(t *testing.T) {
	if r, err := Search(t.Context(), Options{Target: "com"}); err == nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestSearchStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Search(ctx, Options{Target: "example.com"})
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Names) != 0 || r.MayContain || len(r.Bits) != 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStepper(t *testing.T) {
	var told []int
	step := stepper(func(done, total int) { told = append(told, done, total) }, 2)
	for range 3 {
		step()
	}
	if !slices.Equal(told, []int{1, 2, 2, 2}) {
		t.Errorf("%v", told)
	}
	stepper(nil, 1)()
}

func TestJudgeRefuses(t *testing.T) {
	for _, tt := range []struct{ target, name string }{
		{"com", "example.net"},
		{"example.com", "example.com"},
		{"mail.example.com", "example.com"},
		{"example.com", "Example.net"},
	} {
		if r, err := Judge(tt.target, []string{tt.name}); err == nil || r != nil {
			t.Errorf("%s, %s: %v, %v", tt.target, tt.name, r, err)
		}
	}
}

// TestBits counts hits of a name by another hash than the target's, and bits that
// two hashes share.
func TestBits(t *testing.T) {
	family, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		t.Fatal(err)
	}
	bits := bitsOf(family, "example.com")
	if len(bits) != 10 || !slices.Equal(bits[2].Hashes, []string{"PJW", "ELF"}) || bits[0].Index != 1457297803%bloom.ClassicBits {
		t.Errorf("%v", bits)
	}
	bp := bits[7].Index
	if set := setBy(family, "other.com", bits); !slices.Equal(set, []uint64{bp}) {
		t.Errorf("other.com sets %v, want %d", set, bp)
	}
	if set := setBy(family, "other.net", bits); len(set) != 0 {
		t.Errorf("other.net sets %v", set)
	}
}
