package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"spamgate/blocklist"
	"spamgate/internal/check"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
)

// linesOf judges by the lists of a configuration.
func linesOf(t testing.TB, text string, files map[string]string) *check.Lines {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	set, err := local.ReadLists(t.Context(), c, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return linesIn(t, c, set)
}

// linesIn judges by the lists of a Set.
func linesIn(t testing.TB, c *config.Config, set *blocklist.Set) *check.Lines {
	t.Helper()
	o, err := check.OnDisk(t.Context(), c, set, true)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := check.New(o).Lines(check.Question{Offline: true}, check.LineFormat{})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

const twoLists = `
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "doubtful"
path = "doubtful.txt"
action = "tag"
stage = ["header"]
`

// manyAddresses are n addresses, of which each seventh is listed by the one list
// and each eleventh by the other.
func manyAddresses(n int) string {
	var b strings.Builder
	for i := range n {
		domain := "clean.example"
		switch {
		case i%7 == 0:
			domain = "listed.example"
		case i%11 == 0:
			domain = "doubtful.example"
		}
		fmt.Fprintf(&b, "user%d@%s\n", i, domain)
	}
	return b.String()
}

// TestStreamOrder: many batches on all cores come out as one after the other
// would, however the input arrives.
func TestStreamOrder(t *testing.T) {
	lines := linesOf(t, twoLists, map[string]string{"blocked.txt": "listed.example\n", "doubtful.txt": "doubtful.example\n"})
	const n = 40_000
	input := manyAddresses(n)
	var want strings.Builder
	for i := range n {
		switch {
		case i%7 == 0:
			fmt.Fprintf(&want, "reject\tuser%d@listed.example\tblocked", i)
		case i%11 == 0:
			fmt.Fprintf(&want, "tag\tuser%d@doubtful.example\tdoubtful", i)
		default:
			continue
		}
		want.WriteByte('\n')
	}
	for name, in := range map[string]io.Reader{
		"at once":      strings.NewReader(input),
		"without end":  strings.NewReader(strings.TrimSuffix(input, "\n")),
		"in halves":    iotest.HalfReader(strings.NewReader(input)),
		"end and data": iotest.DataErrReader(strings.NewReader(input)),
	} {
		var out bytes.Buffer
		listed, err := stream(t.Context(), lines, in, &out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			f := strings.Split(line, "\t")
			got.WriteString(strings.Join(f[:3], "\t") + "\n")
		}
		if got.String() != want.String() || !listed {
			t.Errorf("%s: %d bytes, want %d; listed %v", name, got.Len(), want.Len(), listed)
		}
	}
}

// TestStreamErrors: the first line that is not an address is named by its number,
// over all batches, and a failure to read or write ends it.
func TestStreamErrors(t *testing.T) {
	lines := linesOf(t, twoLists, map[string]string{"blocked.txt": "listed.example\n", "doubtful.txt": ""})
	clean := strings.Repeat("a@clean.example\n", 20_000)
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		in   io.Reader
		out  io.Writer
		want string
	}{
		{"no address", strings.NewReader(clean + "\nno address\nnor this\n" + clean), io.Discard, `standard input, line 20002: "no address" is not an address: no domain`},
		{"long line", strings.NewReader(clean + strings.Repeat("x", batchSize+1) + "\n"), io.Discard, "standard input, line 20001: a line of more than 131072 bytes is not an address"},
		{"read", io.MultiReader(strings.NewReader(clean+"a@"), iotest.ErrReader(broken)), io.Discard, "standard input, line 20001: broken"},
		{"write", strings.NewReader(strings.Repeat("a@listed.example\n", 100_000)), failingWriter{broken}, "broken"},
	} {
		_, err := stream(t.Context(), lines, tt.in, tt.out)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// BenchmarkCheckStream is "spamgate check -" without the start: 200,000 addresses,
// of which one in a hundred is listed, against a list of a million domains.
//
//	go test ./internal/cli/check -run - -bench CheckStream
func BenchmarkCheckStream(b *testing.B) {
	var list, input bytes.Buffer
	for i := range 1_000_000 {
		fmt.Fprintf(&list, "mail%d.offers%d.example\n", i, i%1000)
	}
	const addresses = 200_000
	for i := range addresses {
		if i%100 == 0 {
			fmt.Fprintf(&input, "user%d@mail%d.offers%d.example\n", i, i, i%1000)
		} else {
			fmt.Fprintf(&input, "first.last%d@news%d.example.com\n", i, i%5000)
		}
	}
	lines := linesOf(b, "[[list]]\nname = \"blocked\"\npath = \"blocked.txt\"\n", map[string]string{"blocked.txt": list.String()})
	b.SetBytes(int64(input.Len()))
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if _, err := stream(b.Context(), lines, bytes.NewReader(input.Bytes()), &out); err != nil {
			b.Fatal(err)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != addresses/100 {
			b.Fatalf("%d are listed", n)
		}
	}
	b.ReportMetric(addresses*float64(b.N)/b.Elapsed().Seconds(), "addresses/s")
}
