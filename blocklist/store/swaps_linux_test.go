package store

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
)

// usage is what a process has.
type usage struct {
	memory     int // resident and its own, in bytes
	threads    int
	goroutines int
	files      []string
	maps       int // of files: indexes
	allMaps    int
}

// usageNow is what there is once the store does nothing in the background.
func usageNow(t *testing.T, s *Store) usage {
	t.Helper()
	for late := time.Now().Add(patient); !atRest(s); runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatal("the store comes to no rest")
		}
	}
	for range 3 { // what a collection frees may have had to be cleaned up, and is freed by the next
		runtime.GC()
		settledGoroutines()
	}
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	number := func(name string) int {
		_, rest, _ := strings.Cut(string(status), "\n"+name+":")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		must(t, err)
		return n
	}
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	return usage{number("RssAnon") << 10, number("Threads"), settledGoroutines(), openFiles(), mappedIndexes(), bytes.Count(maps, []byte("\n"))}
}

// more is what u has more of than before, "" if it has nothing.
func (u usage) more(before usage) string {
	switch left := without(u.files, before.files); {
	case u.memory > before.memory+16<<20: // half a bitmap
		return fmt.Sprintf("memory has grown from %d to %d MiB", before.memory>>20, u.memory>>20)
	case u.goroutines > before.goroutines:
		return fmt.Sprintf("goroutines have piled up from %d to %d", before.goroutines, u.goroutines)
	case len(u.files) > len(before.files):
		return fmt.Sprintf("files are left open: %q", left)
	case u.maps > before.maps:
		return fmt.Sprintf("maps of indexes have piled up from %d to %d", before.maps, u.maps)
	// The runtime's own come and go, and each thread has some.
	case u.allMaps > before.allMaps+20+4*max(0, u.threads-before.threads):
		return fmt.Sprintf("maps have piled up from %d to %d", before.allMaps, u.allMaps)
	}
	return ""
}

// atRest reports that all bits of the present Set, and all of the history, are kept.
func atRest(s *Store) bool {
	if s.Set().Settle() != nil {
		return false
	}
	s.archiver.mu.Lock()
	defer s.archiver.mu.Unlock()
	return !s.archiver.running
}

// someLines is a list of names of a family, long enough for its bits to be kept.
func someLines(family string) string {
	return strings.ReplaceAll(manyLines(partKeys+1000, 0), "host", family)
}

// TestHundredSwaps checks that many swaps of a list, whose bits and history are kept,
// leave no more memory, goroutines, descriptors or maps than the first few: 100 swaps in
// full size, otherwise 24, and 10 with -short.
func TestHundredSwaps(t *testing.T) {
	swaps := unlessShort(24, 10)
	if full() {
		swaps = 100
	}
	path := inDir(t, "spam.txt")
	texts := []string{someLines("a"), someLines("b")}
	write(t, path, texts[0])
	for _, kind := range []blocklist.Kind{blocklist.KindClassic, blocklist.KindCounting, blocklist.KindFuse} {
		if kind != blocklist.KindClassic && !full() {
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			c := stateful(t, blockList("spam", path), blockList("other", write(t, inDir(t, "other.txt"), rotText("o"))))
			c.Filter.Kind, c.History = kind, 2
			s := openStore(t, c)
			swap := func(times int) {
				for n := range times {
					must(t, os.Rename(write(t, path+".new", texts[n%2]), path))
					_, err := rescan(t, s)
					must(t, err)
				}
				set, err := rescan(t, s)
				must(t, err)
				if listed(t, set, "u@b7.example") != verdict.Reject || listed(t, set, "u@a7.example") != verdict.Accept {
					t.Error("the last version is not live")
				}
			}
			swap(6)
			before := usageNow(t, s)
			generation := s.Set().Generation()
			swap(swaps)
			if n := s.Set().Generation() - generation; n != uint64(swaps) {
				t.Errorf("%d swaps, want %d", n, swaps)
			}
			var after usage
			eventually(t, func() string {
				after = usageNow(t, s)
				return after.more(before)
			})
			t.Logf("before: %d MiB, %d goroutines, %d files, %d of %d maps; after: %d MiB, %d, %d, %d of %d",
				before.memory>>20, before.goroutines, len(before.files), before.maps, before.allMaps,
				after.memory>>20, after.goroutines, len(after.files), after.maps, after.allMaps)
		})
	}
}
