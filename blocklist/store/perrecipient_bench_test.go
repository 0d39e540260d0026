package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// linesEach is how many lines each recipient of the list of BenchmarkRecipients has.
const linesEach = 10

func scaleRecipient(i int) string {
	return fmt.Sprintf("user%08d@host%d.example.net", uint32(i/linesEach)*2654435761, i/linesEach%97)
}

// writeRecipients writes the lines, those of each recipient together.
func writeRecipients(b *testing.B, path string, n int) {
	f, err := os.Create(path)
	must(b, err)
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		fmt.Fprintf(w, "%s %s\n", scaleRecipient(i), scaleDomain(i))
	}
	must(b, w.Flush())
	must(b, f.Close())
}

// BenchmarkRecipients compares a list with lines for recipients with a plain one of as many
// lines, and lookups beside the one with those beside the other. For ten million lines:
//
//	SPAMGATE_SCALE=10000000 go test -run '^$' -bench Recipients/.*/read -benchtime 1x ./blocklist/store
//	SPAMGATE_SCALE=10000000 go test -run '^$' -bench Recipients/.*/lookup ./blocklist/store
func BenchmarkRecipients(b *testing.B) {
	if testing.Short() {
		b.Skip("a long list takes seconds; -short")
	}
	n := scaleEntries
	if text := os.Getenv("SPAMGATE_SCALE"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(b, err)
	}
	dir := inDir(b, "")
	small := blockList("small", write(b, filepath.Join(dir, "small.txt"), smallList(100_000)))
	plain, personal := filepath.Join(dir, "plain.txt"), filepath.Join(dir, "personal.txt")
	writeScale(b, plain, n)
	writeRecipients(b, personal, n)
	for _, list := range []List{blockList("plain", plain), personalList(personal)} {
		b.Run(list.Name, func(b *testing.B) { benchmarkRecipients(b, list, small, n) })
	}
}

func benchmarkRecipients(b *testing.B, list, small List, n int) {
	c := stateful(b, list, small)
	c.Filter.Kind = blocklist.KindAuto
	info, err := os.Stat(list.Paths[0])
	must(b, err)
	b.Run("read", func(b *testing.B) {
		b.SetBytes(info.Size())
		for b.Loop() {
			must(b, os.RemoveAll(c.StateDir))
			openAndClose(b, c)
		}
		b.Log(memoryInUse())
	})
	s := openStore(b, c)
	clean := coldSenders(b, 1<<16)
	benchmarkSenders(b, s.Set(), "lookup of a clean sender", verdict.Accept, clean)
	v := s.Set().Only(nil)
	recipients := func(name string, recipients []sender.Address, keys int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if got, err := v.RecipientKeys(recipients[i%len(recipients)]); err != nil || len(got) != keys {
					b.Fatal(got, err)
				}
			}
		})
	}
	recipients("lookup of a recipient without lines", clean, 0)
	if !list.PerRecipient {
		return
	}
	with := make([]sender.Address, 1<<16)
	r := rand.New(rand.NewPCG(1, 6))
	for i := range with {
		with[i] = parse(b, scaleRecipient(r.IntN(n)))
	}
	recipients("lookup of a recipient with lines", with, 1)
	b.Run("lookup of a clean sender for a recipient with lines", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			found, err := v.Find(verdict.Envelope, clean[i%len(clean)], blocklist.FindOptions{For: []string{with[i%len(with)].String()}})
			if err != nil || !found.IsZero() {
				b.Fatal(found, err)
			}
		}
	})
}
