package rhsbl

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/miekg/dns"

	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// benchEntries is how many entries the lists of the benchmarks have: 100,000, or as many as
// SPAMGATE_DNS says.
func benchEntries(b *testing.B) int {
	text := os.Getenv("SPAMGATE_DNS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// benchStore opens a Store of one list of numbered entries.
func benchStore(b *testing.B, format string) *store.Store {
	b.Helper()
	path := filepath.Join(b.TempDir(), "list")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range benchEntries(b) {
		fmt.Fprintf(w, format+"\n", i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	s, err := store.Open(b.Context(), store.Config{Probes: -1, Lists: []store.List{{Name: "list", Paths: []string{path}, Action: verdict.Reject}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkIndex indexes a list as often as it changes, and reports the memory of an entry.
func BenchmarkIndex(b *testing.B) {
	parentsWidth = 8
	defer func() { parentsWidth = 32 }()
	for _, bb := range []struct{ name, format, hashed string }{
		{"domains", "name%d.example", ""},
		{"hosts", "host.name%d.example", ""},
		{"addresses", "user%d@example.com", "hash.test"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			lists := benchStore(b, bb.format)
			st := &state{Settings: Settings{Zone: "bl.test.", HashedZone: bb.hashed}}
			s := &Server{config: Config{Store: lists}}
			var x *index
			for b.Loop() {
				x = s.makeIndex(b.Context(), st, lists.Set())
			}
			size := x.lists[0].parents.filter.Bytes()
			if h := x.lists[0].hashes; h != nil {
				size += 8 * uint64(cap(h.sha1)+cap(h.md5))
			}
			b.ReportMetric(float64(size)/float64(benchEntries(b)), "bytes/entry")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/index")
		})
	}
}

// BenchmarkAnswer answers questions, without sockets.
func BenchmarkAnswer(b *testing.B) {
	lists := benchStore(b, "user@name%[1]d.example\nname%[1]d.example")
	s := newServer(b, lists, zonesOf())
	for _, name := range []string{"name1.example.bl.test", "clean.org.bl.test", namesOf("#user@name1.example.hash.test")[0], namesOf("#nobody@name1.example.hash.test")[0]} {
		question, _ := newQuestion(name, dns.TypeA).Pack()
		b.Run(said(s.ask(b, newQuestion(name, dns.TypeA)))+" "+name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 2*maxUDPSize)
			for b.Loop() {
				s.answer(question, local, true, buf)
			}
		})
	}
}
