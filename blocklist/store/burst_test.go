package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// burst is directories full of list files, and what is done to them.
type burst struct {
	t     testing.TB
	r     *rand.Rand
	root  string
	files []string // those that come and go; the first of each glob stays
	made  int      // names files and entries
}

// burstGlobs are the globs of each list. A file may move from one to the other.
var burstGlobs = map[string][]string{
	"one":   {"a/*.txt"},
	"two":   {"b/*.txt", "b/*.list"},
	"three": {"c/[a-m]*.txt", "a/*.extra"},
}

// places are what files in the burst are called: some match no glob.
var burstPlaces = []string{"a/%d.txt", "b/%d.txt", "b/%d.list", "c/b%d.txt", "c/z%d.txt", "a/%d.extra", "b/.%d.txt", "c/c%d.txt~"}

func newBurst(t testing.TB) *burst {
	b := &burst{t: t, r: rand.New(rand.NewPCG(3, 20_000)), root: inDir(t, "")}
	for _, stays := range []string{"a/stays.txt", "b/stays.txt", "b/stays.list", "c/astays.txt", "a/stays.extra"} {
		path := filepath.Join(b.root, stays)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, b.entries())
	}
	return b
}

func (b *burst) lists() []List {
	var lists []List
	for _, name := range slices.Sorted(maps.Keys(burstGlobs)) {
		l := blockList(name)
		for _, glob := range burstGlobs[name] {
			l.Paths = append(l.Paths, filepath.Join(b.root, glob))
		}
		l.MaxShrink, l.MaxGrowth = 1, -1 // files are taken away by the dozen
		lists = append(lists, l)
	}
	return lists
}

// entries is some new lines.
func (b *burst) entries() string {
	var text strings.Builder
	for range 1 + b.r.IntN(3) {
		b.made++
		fmt.Fprintf(&text, "burst%d.example\n", b.made)
	}
	return text.String()
}

// place is the name of a file, new or not.
func (b *burst) place() string {
	return filepath.Join(b.root, fmt.Sprintf(burstPlaces[b.r.IntN(len(burstPlaces))], b.r.IntN(200)))
}

// step does one thing to one file.
func (b *burst) step() {
	what := b.r.IntN(20)
	if len(b.files) == 0 || what < 8 {
		path := b.place()
		write(b.t, path, b.entries())
		if !slices.Contains(b.files, path) {
			b.files = append(b.files, path)
		}
		return
	}
	i := b.r.IntN(len(b.files))
	path := b.files[i]
	switch {
	case what < 13:
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		must(b.t, err)
		_, err = f.WriteString(b.entries())
		must(b.t, err)
		must(b.t, f.Close())
	case what < 17:
		to := b.place()
		must(b.t, os.Rename(path, to))
		b.files = slices.DeleteFunc(b.files, func(p string) bool { return p == path || p == to })
		b.files = append(b.files, to)
	default:
		must(b.t, os.Remove(path))
		b.files = slices.Delete(b.files, i, i+1)
	}
}

// onDisk is what the lists ought to hold.
func (b *burst) onDisk() map[string][]string {
	want := map[string][]string{}
	for name, globs := range burstGlobs {
		for _, glob := range globs {
			files, err := filepath.Glob(filepath.Join(b.root, glob))
			must(b.t, err)
			for _, path := range files {
				if strings.HasPrefix(filepath.Base(path), ".") {
					continue
				}
				text, err := os.ReadFile(path)
				must(b.t, err)
				want[name] = append(want[name], strings.Fields(string(text))...)
			}
		}
		slices.Sort(want[name])
	}
	return want
}

// inSet is what the lists hold.
func inSet(tb testing.TB, set *blocklist.Set, lists []List) map[string][]string {
	tb.Helper()
	got := map[string][]string{}
	for _, l := range lists {
		index, _, _, ok := set.Index(l.Name)
		if !ok {
			tb.Fatalf("%s: no index", l.Name)
		}
		must(tb, index.Records(func(r segment.Record) bool {
			got[l.Name] = append(got[l.Name], r.Key)
			return true
		}))
		slices.Sort(got[l.Name])
	}
	return got
}

// TestBurstOfChanges does 20,000 things to the files of three lists (4,000 with
// -short), as fast as it can, and then nothing: the Set must come to be what is on
// disk, by the file system's events alone. How long that takes is logged; it ought to be less than 5 seconds.
func TestBurstOfChanges(t *testing.T) {
	changes := unlessShort(20_000, 4000)
	b := newBurst(t)
	c := Config{Lists: b.lists(), PollInterval: time.Hour, StateDir: inDir(t, "state")}
	s := openStore(t, c)
	began := time.Now()
	for range changes {
		b.step()
	}
	ended := time.Now()
	want := b.onDisk()
	equal := func() bool { return maps.EqualFunc(inSet(t, s.Set(), c.Lists), want, slices.Equal) }
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * patient); !equal(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("of generation %d are not as the disk says: %+v", s.Set().Generation(), s.Set().Stats().Lists)
		}
	}
	t.Logf("%d changes in %v, equal to the disk %v after the last, at generation %d; %d files, %d entries",
		changes, ended.Sub(began).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond), s.Set().Generation(), len(b.files), s.Set().Stats().Entries)
	for name, entries := range want {
		for _, entry := range entries {
			if d := lookup(t, s.Set(), verdict.Envelope, parse(t, "u@"+entry)); d.Match.List != name {
				t.Fatalf("%s: %+v, want it in %s", entry, d, name)
			}
		}
	}
	for n := range b.made {
		name := fmt.Sprintf("burst%d.example", n+1)
		there := slices.ContainsFunc(slices.Collect(maps.Values(want)), func(entries []string) bool {
			_, found := slices.BinarySearch(entries, name)
			return found
		})
		if !there && listed(t, s.Set(), "u@"+name) != verdict.Accept {
			t.Fatalf("%s is gone, and listed", name)
		}
	}
}
