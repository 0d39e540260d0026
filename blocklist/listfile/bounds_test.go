package listfile

import (
	"io"
	"runtime"
	"strings"
	"testing"
)

// repeated is a text again and again, size bytes of it.
func repeated(s string, size int) io.Reader {
	block := strings.Repeat(s, max(1, (64<<10)/len(s)))
	return io.LimitReader(&cycle{block: block}, int64(size))
}

type cycle struct {
	block string
	pos   int
}

func (c *cycle) Read(p []byte) (int, error) {
	n := copy(p, c.block[c.pos:])
	c.pos = (c.pos + n) % len(c.block)
	return n, nil
}

// TestMemoryIsBounded reads what never ends in each format: it takes no more
// memory than its shortest part needs.
func TestMemoryIsBounded(t *testing.T) {
	const size, most = 32 << 20, 12 << 20
	columns := map[string]string{`{"x": {`: "domain", `{"x": "`: "domain", `{"x": [`: "domain"}
	for _, c := range []struct {
		name        string
		format      Format
		start, more string
	}{
		{"a line", Plain, "", "a"},
		{"a line that goes on", PostfixAccess, "a@example.com REJECT\n", " and more of it, and more of it, and more of it\n"},
		{"a parenthesis", RPZ, "@ SOA (\n", " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 ; and more\n"},
		{"a string", JSON, `["`, "a"},
		{"escapes", JSON, `["`, `\\`},
		{"a word", JSON, `[`, "1"},
		{"brackets", JSON, `[`, "["},
		{"an object", JSON, `[{"a": "`, "a"},
		{"white space", JSON, ``, " \n"},
		{"members that are ignored", JSON, `{"x": {`, `"a": [1, "b"],` + strings.Repeat("\n", 1000)},
		{"a value that is ignored", JSON, `{"x": "`, "a"},
		{"arrays that are ignored", JSON, `{"x": [`, "["},
		{"objects", JSON, ``, `{"x": 1}` + strings.Repeat("\n", 1000)},
		{"a URL", URLs, "https://", "a"},
		{"a quote", CSV, "domain\n\"", "a\n"},
		{"a cell", CSV, "domain\n", "a"},
		{"cells", CSV, "domain\n", ","},
		{"settings", Dnsmasq, "address=", "/a"},
	} {
		var peak uint64
		watch := &watcher{from: io.MultiReader(strings.NewReader(c.start), repeated(c.more, size)), peak: &peak}
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		watch.before = before.HeapAlloc
		_, err := ReadParallel(t.Context(), watch, Options{Format: c.format, Column: columns[c.start]}, 2,
			func() func(Entry) error { return func(Entry) error { return nil } }, nil)
		if peak > most {
			t.Errorf("%s: %s: %d KiB, error %v", c.format, c.name, peak>>10, err)
		}
	}
}

// watcher looks at the heap now and then.
type watcher struct {
	from   io.Reader
	n      int
	before uint64
	peak   *uint64
}

func (w *watcher) Read(p []byte) (int, error) {
	if w.n++; w.n%256 == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > w.before {
			*w.peak = max(*w.peak, m.HeapAlloc-w.before)
		}
	}
	return w.from.Read(p)
}

// TestExpandIsBounded: a text that names a long variable many times is cut.
func TestExpandIsBounded(t *testing.T) {
	r := rbldnsd{}
	r.vars[1] = strings.Repeat("é", MaxLine/2-10)
	if got := r.expand(strings.Repeat("$1", MaxLine/2), "a.example"); len(got) > MaxLine {
		t.Errorf("%d bytes", len(got))
	}
}
