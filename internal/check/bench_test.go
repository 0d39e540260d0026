package check

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"spamgate/internal/decisions"
)

// BenchmarkEngine asks about an address that is listed, with its trace, and previews a change of
// a list by 1,000 decisions. SPAMGATE_CHECK_ENTRIES is the number of entries, 100,000 by default.
//
//	go test ./internal/check -run - -bench Engine -benchtime 2s
func BenchmarkEngine(b *testing.B) {
	entries := 100_000
	if n, err := strconv.Atoi(os.Getenv("SPAMGATE_CHECK_ENTRIES")); err == nil {
		entries = n
	}
	c := load(b, oneList+"[[list]]\nname = \"allowed\"\npath = \"allowed.txt\"\ntype = \"allow\"\n", map[string]string{"allowed.txt": ""})
	if err := writeEntries(filepath.Join(filepath.Dir(c.Lists[0].Path), "blocked.txt"), entries); err != nil {
		b.Fatal(err)
	}
	o, err := OnDisk(b.Context(), c, setOf(b, c), true)
	if err != nil {
		b.Fatal(err)
	}
	o.Command, o.Served = false, nil
	e := New(o)
	question := func(i int) Question {
		return Question{Address: fmt.Sprintf("user%d@mail%d.offers%d.example", i, i%entries, i%entries%1000), Trace: true, Offline: true}
	}
	b.Run("trace", func(b *testing.B) {
		i := 0
		for b.Loop() {
			a, err := e.Address(b.Context(), question(i*7919))
			if err != nil || !a.Listed {
				b.Fatal(err)
			}
			a.Print(io.Discard)
			i++
		}
	})
	b.Run("preview", func(b *testing.B) {
		var past []decisions.Decision
		for i := range 1000 {
			d := withHeader(decision(strconv.Itoa(i), question(i).Address, "ann@example.net"), "a@clean.example", question(i+1).Address)
			d.Listener = ""
			past = append(past, d)
		}
		for b.Loop() {
			if r, err := e.Preview(b.Context(), Proposed{List: "allowed", Entry: "offers1.example"}, past); err != nil || r.Compared != len(past) {
				b.Fatal(r, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(past)), "µs/decision")
	})
}

// writeEntries writes a list of domains.
func writeEntries(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, "mail%d.offers%d.example  # bulk mail\n", i, i%1000)
	}
	return w.Flush()
}
