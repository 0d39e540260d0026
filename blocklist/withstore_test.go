package blocklist_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) string {
	tb.Helper()
	must(tb, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// fileList is a list whose entries stand in a file.
func fileList(l blocklist.List, path string) store.List {
	return store.List{
		Name: l.Name, Type: l.Type, Action: l.Action, HeaderAction: l.HeaderAction, Stages: l.Stages,
		Override: l.Override, Paths: []string{path}, AllowPublicSuffix: true,
	}
}

// fast is a configuration with a short debounce time and no polls to speak of.
func fast(lists ...store.List) store.Config {
	return store.Config{Lists: lists, Debounce: 20 * time.Millisecond, PollInterval: time.Hour, Probes: 2000}
}

func openStore(tb testing.TB, c store.Config) *store.Store {
	tb.Helper()
	s, err := store.Open(context.Background(), c)
	must(tb, err)
	tb.Cleanup(func() { s.Close() })
	return s
}

func parse(tb testing.TB, address string) sender.Address {
	tb.Helper()
	a, err := sender.Parse(address)
	must(tb, err)
	return a
}

func lookup(tb testing.TB, s *blocklist.Set, stage verdict.Stage, a sender.Address) verdict.Verdict {
	tb.Helper()
	v, err := s.Lookup(stage, a)
	must(tb, err)
	return v
}

func listed(tb testing.TB, s *blocklist.Set, address string) verdict.Action {
	tb.Helper()
	return lookup(tb, s, verdict.Envelope, parse(tb, address)).Action
}

// A Store goes from every filter to every other and finds what is listed, and
// under one name other files, which a counting filter makes of what it had.
func TestReloadChangesFilter(t *testing.T) {
	here, there := filepath.Join(t.TempDir(), "here.txt"), filepath.Join(t.TempDir(), "there.txt")
	write(t, here, "both.example\nhere.example\n")
	write(t, there, "both.example\nthere.example\n")
	s := openStore(t, fast(fileList(blocklist.List{Name: "spam", Action: verdict.Reject}, here)))
	paths := map[string]string{"here": here, "there": there}
	for round := range blocklist.UnlessShort(2, 1) {
		for _, f := range blocklist.SomeFilters() {
			for name, path := range paths {
				c := fast(fileList(blocklist.List{Name: "spam", Action: verdict.Reject}, path))
				c.Filter = f
				must(t, s.Reload(context.Background(), c))
				for _, domain := range []string{"both", name} {
					if listed(t, s.Set(), "u@"+domain+".example") != verdict.Reject {
						t.Fatalf("round %d, %v, %s: %s.example is not listed", round, f, name, domain)
					}
				}
				anew, _, err := store.Build(t.Context(), c)
				must(t, err)
				if !bytes.Equal(blocklist.FilterBits(t, s.Set()), blocklist.FilterBits(t, anew)) {
					t.Fatalf("round %d, %v, %s: the filter is not that of a new Store", round, f, name)
				}
			}
		}
	}
}

// A counting Store under lookups while its list changes: half of the entries
// stay, and are found in every Set; the others come and go with the versions.
func TestCountingLive(t *testing.T) {
	text := func(version int) string {
		var b strings.Builder
		for i := range 50 {
			fmt.Fprintf(&b, "stays%d.example\ngoes%d-%d.example\n", i, version, i)
		}
		return b.String()
	}
	path := write(t, filepath.Join(t.TempDir(), "list.txt"), text(0))
	c := fast(fileList(blocklist.List{Name: "spam", Action: verdict.Reject}, path))
	c.Debounce = 5 * time.Millisecond
	c.Filter = blocklist.Filter{Kind: blocklist.KindCounting, FPR: 1e-9}
	s := openStore(t, c)

	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if listed(t, s.Set(), fmt.Sprintf("u@stays%d.example", i%50)) != verdict.Reject {
				t.Errorf("generation %d: stays%d.example is not listed", s.Set().Generation(), i%50)
				return
			}
		}
	})
	for version := 1; version <= 30; version++ {
		before := s.Set()
		write(t, path, text(version))
		set, err := s.Await(t.Context(), before.Generation()+1)
		must(t, err)
		for i := range 50 {
			if listed(t, set, fmt.Sprintf("u@goes%d-%d.example", version, i)) != verdict.Reject {
				t.Errorf("version %d: entry %d is not listed", version, i)
			}
			if gone := fmt.Sprintf("goes%d-%d.example", version-1, i); set.FilterMayContain(gone) {
				t.Errorf("version %d: %s is still in the filter", version, gone)
			}
		}
	}
	close(stop)
	readers.Wait()
}

// Random lists, edits, restarts and lookups, for every kind of filter: the Store
// decides as the plain twin does (see TestSetAgainstPlain).
func TestStoreAgainstPlain(t *testing.T) {
	for i, kind := range blocklist.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(i)))
			dir := t.TempDir()
			lists := blocklist.RandomLists(r)
			c := fast()
			c.StateDir = filepath.Join(dir, "state")
			c.Filter.Kind = kind
			c.Debounce, c.MaxDebounce = time.Microsecond, time.Second
			path := func(i int) string { return filepath.Join(dir, lists[i].Name) }
			put := func(i int) {
				text := strings.Join(lists[i].Entries, "\n") + "\n" // never of 0 bytes
				write(t, path(i), text)
			}
			for i := range lists {
				put(i)
				c.Lists = append(c.Lists, fileList(lists[i].List, path(i)))
			}
			s := openStore(t, c)
			for round := range blocklist.UnlessShort(60, 20) {
				l := &lists[r.IntN(len(lists))]
				for range 1 + r.IntN(3) {
					if n := len(l.Entries); n > 0 && r.IntN(2) == 0 {
						j := r.IntN(n)
						l.Entries = append(l.Entries[:j:j], l.Entries[j+1:]...)
					} else {
						entry, _ := blocklist.RandomText(r)
						if l.Type == blocklist.Block && r.IntN(3) == 0 {
							entry = "!" + entry
						}
						l.Entries = append(l.Entries, entry)
					}
				}
				for i := range lists {
					put(i) // some of them the same as before
				}
				if r.IntN(6) == 0 {
					must(t, s.Close())
					s = openStore(t, c)
				}
				must(t, s.Rescan(t.Context()))
				set := s.Set()
				for range 40 {
					_, address := blocklist.RandomText(r)
					stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
					got := blocklist.DescribeVerdict(lookup(t, set, stage, parse(t, address)))
					if want := blocklist.PlainDecision(lists, stage, address); got != want {
						t.Fatalf("round %d, %s %s:\ngot  %s\nwant %s\nlists %+v", round, stage, address, got, want, lists)
					}
				}
			}
			if err := checkIndexes(s.Set(), lists, path); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkIndexes compares what Index gives with the lists.
func checkIndexes(set *blocklist.Set, lists []blocklist.PlainList, path func(i int) string) error {
	for i := range lists {
		keys := map[string]bool{}
		for _, e := range lists[i].Entries {
			keys[strings.TrimPrefix(e, "!")] = true
		}
		index, key, files, ok := set.Index(lists[i].Name)
		if !ok || index.Len() != uint64(len(keys)) || len(files) != 1 || files[0] != path(i) {
			return fmt.Errorf("%s: index %v of %d keys, want %d, of files %q", lists[i].Name, ok, index.Len(), len(keys), files)
		}
		for k := range keys {
			if _, ok, err := index.Lookup(key.Hash([]byte(k)), []byte(k)); !ok || err != nil {
				return fmt.Errorf("%s: %s: %v, %w", lists[i].Name, k, ok, err)
			}
		}
	}
	return nil
}
