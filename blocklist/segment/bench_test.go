package segment

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

var benchEntries = flag.Int("entries", 1_000_000, "entries of the benchmarks")

// benchKey is key i of 33 bytes. It is valid until b is used again.
func benchKey(b []byte, i int) []byte {
	b = append(b[:0], "user"...)
	b = strconv.AppendUint(b, 1_000_000_000_000+uint64(i), 36)
	b = append(b, "@mail.example.com"...)
	return append(b, "abcdefgh"[:33-len(b)]...)
}

// benchBuild makes a segment of n entries; every tenth has a reason.
func benchBuild(tb testing.TB, path string, n, adders int) *Segment {
	b := NewBuilder(BuildOptions{Key: &testKey, Dir: tb.TempDir()})
	defer b.Abort()
	var wg sync.WaitGroup
	for part := range adders {
		wg.Go(func() {
			a := b.Adder()
			buf := make([]byte, 0, 64)
			for i := part; i < n; i += adders {
				buf = benchKey(buf, i)
				e := Entry{Key: unsafe.String(&buf[0], len(buf)), Line: i + 1}
				if i%10 == 0 {
					e.Reason = "spam seen by the trap"
				}
				if err := a.Add(e); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s, err := b.Finish(tb.Context(), path, Header{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkBuild is from entries to a file that is synced and in its place:
//
//	go test -run '^$' -bench Build -benchtime 1x ./blocklist/segment -entries 10000000
func BenchmarkBuild(b *testing.B) {
	n := *benchEntries
	path := filepath.Join(b.TempDir(), "list.seg")
	b.ReportAllocs()
	resetPeak()
	for b.Loop() {
		s := benchBuild(b, path, n, runtime.GOMAXPROCS(0))
		b.ReportMetric(float64(s.Size())/float64(n), "bytes/entry")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/entry")
	if peak := peakMiB(); peak > 0 {
		b.ReportMetric(peak, "peak-MiB")
	}
}

// resetPeak makes peakMiB begin anew; see proc(5).
func resetPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakMiB is the most memory that was resident at once, 0 where that is not
// known.
func peakMiB() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "kB")
	kib, _ := strconv.ParseFloat(strings.TrimSpace(peak), 64)
	return kib / 1024
}

func BenchmarkLookup(b *testing.B) {
	n := *benchEntries
	s := benchBuild(b, filepath.Join(b.TempDir(), "list.seg"), n, runtime.GOMAXPROCS(0))
	if err := s.Verify(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		first int
	}{{"present", 0}, {"absent", n}} {
		b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 64)
			i := 0
			for b.Loop() {
				i = (i + 7_654_321) % n
				buf = benchKey(buf, c.first+i)
				_, ok, err := s.Lookup(testKey.Hash(buf), buf)
				if err != nil || ok != (c.first == 0) {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// BenchmarkScan reads all keys, as a filter that is made anew does.
func BenchmarkScan(b *testing.B) {
	n := *benchEntries
	s := benchBuild(b, filepath.Join(b.TempDir(), "list.seg"), n, runtime.GOMAXPROCS(0))
	var sum uint64
	for b.Loop() {
		err := s.Scan(0, math.MaxUint64, func(hash uint64, key []byte) bool {
			sum += hash + uint64(len(key))
			return true
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
}

// BenchmarkOpen is what a start with unchanged lists costs, for each list.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "list.seg")
	benchBuild(b, path, *benchEntries, runtime.GOMAXPROCS(0))
	for b.Loop() {
		if _, err := mapPath(path, &testKey); err != nil {
			b.Fatal(err)
		}
	}
}
