package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/disposable"
)

// The disposable list as a file, and a configuration with it.
func disposableConfig(tb testing.TB) (Config, string) {
	path := write(tb, inDir(tb, "disposable.txt"), string(disposable.Text()))
	c := fast(blockList("disposable", path))
	c.Debounce = DefaultDebounce
	return c, path
}

func benchmarkLookup(b *testing.B, address string, want verdict.Action) {
	c, _ := disposableConfig(b)
	set := build(b, c)
	a := parse(b, address)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if d, err := set.Lookup(verdict.Envelope, a); err != nil || d.Action != want {
			b.Fatal(d, err)
		}
	}
}

func BenchmarkLookupMiss(b *testing.B) {
	benchmarkLookup(b, "someone@mail.example.com", verdict.Accept)
}
func BenchmarkLookupHit(b *testing.B) { benchmarkLookup(b, "someone@mail.0-180.com", verdict.Reject) }

// coldSenders makes n different senders of three labels, none of them listed.
func coldSenders(tb testing.TB, n int) []sender.Address {
	senders := make([]sender.Address, n)
	for i := range senders {
		senders[i] = parse(tb, fmt.Sprintf("user%d@mx%d.host%d.example", i*7919%10007, i%13, i))
	}
	return senders
}

// Misses in which the filter's memory is not in the cache: 65,536 senders in
// turn.
func BenchmarkLookupMissCold(b *testing.B) {
	c, _ := disposableConfig(b)
	set := build(b, c)
	senders := coldSenders(b, 1<<16)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		set.Lookup(verdict.Envelope, senders[i%len(senders)])
	}
}

// With every kind of key in the list, none is skipped.
func BenchmarkLookupMissAllKinds(b *testing.B) {
	text := append(disposable.Text(), "a@a.example\n@b.example\n*.c.example\nd@\n<>\n"...)
	set := build(b, fast(blockList("all", write(b, inDir(b, "all.txt"), string(text)))))
	senders := coldSenders(b, 1<<16)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		set.Lookup(verdict.Envelope, senders[i%len(senders)])
	}
}

func BenchmarkBuild(b *testing.B) {
	c, _ := disposableConfig(b)
	b.ReportAllocs()
	for b.Loop() {
		build(b, c)
	}
}

// From the end of a write to the new Set being live, the debounce time
// (250 ms) included.
func BenchmarkEventToLive(b *testing.B) {
	c, path := disposableConfig(b)
	store := openStore(b, c)
	text := disposable.Text()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		change := bytes.Repeat([]byte("#"), i%7+1)
		if err := os.WriteFile(path, append(text, change...), 0o644); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		next := store.Set().Generation() + 1
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := store.Await(ctx, next); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
}

// One of two lists, chosen for each message anew.
func BenchmarkViewMiss(b *testing.B) {
	c, _ := disposableConfig(b)
	c.Lists = append(c.Lists, blockList("other", write(b, inDir(b, "other.txt"), "example.net\n")))
	set := build(b, c)
	a := parse(b, "someone@mail.example.com")
	names := []string{"disposable"}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if d, err := set.Only(names).Lookup(verdict.Envelope, a); err != nil || d.Action != verdict.Accept {
			b.Fatal(d, err)
		}
	}
}
