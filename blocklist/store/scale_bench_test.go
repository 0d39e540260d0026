package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// scaleEntries is how many entries the list of BenchmarkScale has, unless
// SPAMGATE_SCALE says.
const scaleEntries = 1_000_000

// scaleDomain is the i-th domain of the list. The factor is odd, so that all are
// different.
func scaleDomain(i int) string {
	return fmt.Sprintf("offers-%010d.mailing%d.example%d.com", uint32(i)*2654435761, i%997, i%13)
}

// smallList is a list beside it.
func smallList(entries int) string {
	var b strings.Builder
	for i := range entries {
		fmt.Fprintf(&b, "small%d.test\n", i)
	}
	return b.String()
}

// writeScale writes the list; a generator takes no room in the repository.
func writeScale(b *testing.B, path string, entries int) {
	f, err := os.Create(path)
	must(b, err)
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range entries {
		w.WriteString(scaleDomain(i))
		w.WriteByte('\n')
	}
	must(b, w.Flush())
	must(b, f.Close())
}

// BenchmarkScale is what a long list costs. For the ten million entries of the
// project's aims:
//
//	SPAMGATE_SCALE=10000000 go test -run=^$ -bench=Scale -benchtime=3x ./blocklist
//
// with -bench=Scale/lookup and without -benchtime for lookups.
func BenchmarkScale(b *testing.B) {
	if testing.Short() {
		b.Skip("a long list takes seconds; -short")
	}
	entries := scaleEntries
	if text := os.Getenv("SPAMGATE_SCALE"); text != "" {
		var err error
		entries, err = strconv.Atoi(text)
		must(b, err)
	}
	dir := inDir(b, "")
	small := write(b, filepath.Join(dir, "small.txt"), smallList(100_000))
	big := filepath.Join(dir, "big.txt")
	writeScale(b, big, entries)
	c := stateful(b, blockList("big", big), blockList("small", small))
	c.Debounce, c.Filter.Kind = DefaultDebounce, blocklist.KindAuto

	b.Run("text to live", func(b *testing.B) {
		for b.Loop() {
			must(b, os.RemoveAll(c.StateDir))
			openAndClose(b, c)
		}
	})
	openAndClose(b, c)
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			openAndClose(b, c)
		}
	})
	b.Run("a line more beside it", func(b *testing.B) {
		s := openStore(b, c)
		for i := 1; b.Loop(); i++ {
			next := s.Set().Generation() + 1
			must(b, os.WriteFile(small, []byte(smallList(100_000+i%2)), 0o644))
			await(b, s, next)
		}
	})
	s := openStore(b, c)
	benchmarkSenders(b, s.Set(), "lookup of a clean sender", verdict.Accept, coldSenders(b, 1<<16))
	listed := make([]sender.Address, 1<<16)
	for i := range listed {
		listed[i] = parse(b, "u@"+scaleDomain(i*7919%entries))
	}
	benchmarkSenders(b, s.Set(), "lookup of a listed sender", verdict.Reject, listed)
	time.Sleep(10 * time.Second)
	b.Logf("10 s later: %s", memoryInUse())
}

// openAndClose starts a Store, and ends it once it has kept what it built.
func openAndClose(b *testing.B, c Config) {
	s, err := Open(context.Background(), c)
	must(b, err)
	must(b, s.Close())
}

func benchmarkSenders(b *testing.B, set *blocklist.Set, name string, want verdict.Action, senders []sender.Address) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if d, err := set.Lookup(verdict.Envelope, senders[i%len(senders)]); err != nil || d.Action != want {
				b.Fatal(d, err)
			}
		}
	})
}

// memoryInUse says what the kernel does of this process's memory, where it tells.
func memoryInUse() string {
	status, _ := os.ReadFile("/proc/self/status")
	var lines []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(lines, ", ")
}
