package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

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
// lines: reading, and lookups of senders in turn, in Sets that have a short list besides. For
// ten million lines, the memory of one list alone:
//
//	SPAMGATE_SCALE=10000000 go test -run '^$' -bench Recipients/read/personal -benchtime 1x ./blocklist/store
//	SPAMGATE_SCALE=10000000 go test -run '^$' -bench Recipients/lookup -benchtime 200x ./blocklist/store
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
	var configs []Config
	for _, list := range []List{blockList("plain", plain), personalList(personal)} {
		c := stateful(b, list, small)
		c.Filter.Kind, c.Probes = blocklist.KindAuto, -1
		configs = append(configs, c)
		b.Run("read/"+list.Name, func(b *testing.B) { benchmarkReading(b, c) })
	}
	var sets []*blocklist.Set
	for _, c := range configs {
		set := openStore(b, c).Set()
		must(b, set.Settle()) // now, and not during lookups
		sets = append(sets, set)
	}
	clean := coldSenders(b, 1<<16)
	b.Run("lookup/in turn", func(b *testing.B) { benchmarkInTurn(b, sets, clean) })
	b.Run("lookup/recipients", func(b *testing.B) { benchmarkRecipientKeys(b, sets[1].Only(nil), clean, n) })
}

// benchmarkReading reads a list once for each run, however long it takes.
func benchmarkReading(b *testing.B, c Config) {
	info, err := os.Stat(c.Lists[0].Paths[0])
	must(b, err)
	must(b, os.RemoveAll(c.StateDir))
	began := time.Now()
	openAndClose(b, c)
	took := time.Since(began).Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took, "s/list")
	b.ReportMetric(float64(info.Size())/1e6/took, "MB/s")
	b.Log(memoryInUse())
}

// benchmarkInTurn looks the same clean senders up in both Sets, some thousand in the one and
// then in the other. The best round counts, since other load on the machine is none of theirs.
func benchmarkInTurn(b *testing.B, sets []*blocklist.Set, clean []sender.Address) {
	const chunk = 1 << 12
	best := [2]time.Duration{time.Hour, time.Hour}
	for rounds := 0; b.Loop(); rounds++ {
		senders := clean[rounds*chunk%len(clean):][:chunk]
		for i, set := range sets {
			began := time.Now()
			for _, a := range senders {
				if d, err := set.Lookup(verdict.Envelope, a); err != nil || d.Action != verdict.Accept {
					b.Fatal(d, err)
				}
			}
			best[i] = min(best[i], time.Since(began))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(best[0].Nanoseconds())/chunk, "ns/plain")
	b.ReportMetric(float64(best[1].Nanoseconds())/chunk, "ns/personal")
}

// benchmarkRecipientKeys looks recipients up, without lines and with them.
func benchmarkRecipientKeys(b *testing.B, v *blocklist.View, without []sender.Address, n int) {
	with := make([]sender.Address, len(without))
	r := rand.New(rand.NewPCG(1, 6))
	for i := range with {
		with[i] = parse(b, scaleRecipient(r.IntN(n)))
	}
	const chunk = 1 << 12
	best := [3]time.Duration{time.Hour, time.Hour, time.Hour}
	for rounds := 0; b.Loop(); rounds++ {
		pos := rounds * chunk % len(with)
		for i, recipients := range [][]sender.Address{without[pos:][:chunk], with[pos:][:chunk]} {
			began := time.Now()
			for _, a := range recipients {
				if keys, err := v.RecipientKeys(a); err != nil || len(keys) != i {
					b.Fatal(keys, err)
				}
			}
			best[i] = min(best[i], time.Since(began))
		}
		began := time.Now()
		for i, a := range without[pos:][:chunk] {
			key := [1]string{with[pos+i].String()}
			if found, err := v.Find(verdict.Envelope, a, blocklist.FindOptions{For: key[:]}); err != nil || !found.IsZero() {
				b.Fatal(found, err)
			}
		}
		best[2] = min(best[2], time.Since(began))
	}
	b.ReportMetric(0, "ns/op")
	for i, unit := range []string{"ns/without", "ns/with", "ns/sender"} {
		b.ReportMetric(float64(best[i].Nanoseconds())/chunk, unit)
	}
}
