package hits

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// calendar is a clock that tests set.
type calendar struct {
	mu  sync.Mutex
	now time.Time
}

func (c *calendar) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *calendar) set(day string) Day {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t.Add(10 * time.Hour)
	return DayOf(t)
}

const testKey = 42

// open makes a Log that has begun, with its files in a directory, which is not
// closed by itself.
func open(t *testing.T, dir string, c *calendar, more Options) (*Log, *bytes.Buffer) {
	t.Helper()
	l, text := prepare(dir, c, more)
	l.Start(testKey, []string{"a", "b"})
	return l, text
}

// prepare makes the Log of open, which has not begun.
func prepare(dir string, c *calendar, more Options) (*Log, *bytes.Buffer) {
	var text bytes.Buffer
	more.Dir, more.Name = dir, func(list string) string { return list + "/hits" }
	more.SaveEvery = time.Hour
	more.Logger = slog.New(slog.NewTextHandler(&text, nil))
	more.now = c.Now
	return New(more), &text
}

// spread makes hashes of small numbers that go to all shards.
func spread(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }

func wantLast(t *testing.T, s *Snapshot, hash uint64, want string) {
	t.Helper()
	if got := s.Last(hash).String(); got != want {
		t.Errorf("the last match of %x is %s, want %s", hash, got, want)
	}
}

func TestDays(t *testing.T) {
	for _, test := range []struct{ time, want string }{
		{"1969-12-31T00:00:00Z", "never"},
		{"2026-12-31T23:59:59Z", "2026-12-31"},
		{"2027-01-01T00:00:00Z", "2027-01-01"},
		{"2027-01-01T01:00:00+02:00", "2026-12-31"},
		{"3000-01-01T00:00:00Z", "2149-06-06"},
	} {
		instant, err := time.Parse(time.RFC3339, test.time)
		if err != nil {
			t.Fatal(err)
		}
		if got := DayOf(instant).String(); got != test.want {
			t.Errorf("%s is on %s, want %s", test.time, got, test.want)
		}
	}
}

// TestRestart records on several days, with a Log for each.
func TestRestart(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	run := func(day string, before, after uint64, record ...int) *Snapshot {
		t.Helper()
		c.set(day)
		l, text := open(t, dir, c, Options{})
		if n := l.Today("a"); n != before {
			t.Errorf("%s: %d hits at the start, want %d", day, n, before)
		}
		for _, i := range record {
			l.Record("a", spread(i))
		}
		if n := l.Today("a"); n != after || l.Total("a") != uint64(len(record)) || l.Today("b") != 0 {
			t.Errorf("%s: %d hits, want %d", day, n, after)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if text.Len() > 0 {
			t.Errorf("%s: logged %s", day, text)
		}
		s, err := Read(dir, "a/hits", testKey)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	run("2026-03-01", 0, 4, 1, 2, 2, 3)
	run("2026-03-02", 0, 1, 2)
	s := run("2026-03-02", 1, 3, 2, 4)
	wantLast(t, s, spread(1), "2026-03-01")
	wantLast(t, s, spread(2), "2026-03-02")
	wantLast(t, s, spread(4), "2026-03-02")
	wantLast(t, s, spread(5), "never")
	if s.Known().String() != "2026-03-01" || s.Len() != 4 {
		t.Errorf("%d entries, known from %s on", s.Len(), s.Known())
	}
	s = run("2026-03-09", 0, 0) // no hit: nothing to write
	wantLast(t, s, spread(1), "2026-03-01")
	if _, err := Read(dir, "b/hits", testKey); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list b without hits: %v", err)
	}
}

// TestHandover has two Logs at once on the same files, as while one process takes
// over from another: nothing that either was told is lost or counted twice.
func TestHandover(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	c.set("2026-03-01")
	old, _ := open(t, dir, c, Options{})
	old.Record("a", spread(1))
	if err := old.Save(); err != nil {
		t.Fatal(err)
	}
	next, _ := open(t, dir, c, Options{})
	old.Record("a", spread(2))
	next.Record("a", spread(3))
	next.Record("a", spread(3))
	if err := next.Save(); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := next.Save(); err != nil { // with nothing new of its own
		t.Fatal(err)
	}
	if n := next.Today("a"); n != 4 || next.Snapshot("a").Last(spread(2)) == 0 {
		t.Errorf("%d hits today, and the old one's are not all known", n)
	}
	next.Record("a", spread(4))
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if n := next.Today("a"); n != 5 {
		t.Errorf("%d hits today, want 5", n)
	}
	s, err := Read(dir, "a/hits", testKey)
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 4 || s.On(DayOf(c.Now())) != 5 {
		t.Errorf("the file has %d entries and %d hits, want 4 and 5", s.Len(), s.On(DayOf(c.Now())))
	}
}

// TestDamage breaks a file in every way: it is said, and recording begins anew.
func TestDamage(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	c.set("2026-03-01")
	l, _ := open(t, dir, c, Options{})
	for i := range 100 {
		l.Record("a", spread(i))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a", "hits")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(pos int) []byte {
		b := bytes.Clone(good)
		b[pos] ^= 1
		return b
	}
	breaks := map[string][]byte{
		"empty":        {},
		"text":         []byte(strings.Repeat("no file of hits\n", 100)),
		"cut":          good[:len(good)-1],
		"longer":       append(bytes.Clone(good), 0),
		"header":       flipped(len(magic) + 8),
		"hash":         flipped(headerSize + 5),
		"day":          flipped(len(good) - 40),
		"checksum":     flipped(len(good) - 1),
		"half of zero": append(bytes.Clone(good[:len(good)/2]), make([]byte, len(good)/2)...),
	}
	for name, text := range breaks {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(filepath.Dir(path), filepath.Base(path), testKey); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want %v", name, err, ErrDamaged)
		}
		c.set("2026-03-05")
		l, log := open(t, dir, c, Options{})
		l.Record("a", spread(1))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "damaged") || !strings.Contains(log.String(), path) {
			t.Errorf("%s: the log says %q", name, log)
		}
		s, err := Read(filepath.Dir(path), filepath.Base(path), testKey)
		if err != nil || s.Len() != 1 || s.Known().String() != "2026-03-05" {
			t.Errorf("%s: afterwards %+v, %v", name, s, err)
		}
	}
	if _, err := decode(good, testKey+1); !errors.Is(err, ErrKey) {
		t.Errorf("with another key: %v, want %v", err, ErrKey)
	}
}

// TestForget has more entries match than are remembered: the oldest go, and the
// Log knows what it no longer knows.
func TestForget(t *testing.T) {
	const limit = 800
	dir, c := t.TempDir(), &calendar{}
	c.set("2026-03-01")
	l, text := prepare(dir, c, Options{MaxEntries: limit})
	l.full = nil // its own goroutine never comes to it: see TestForgetsByItself
	l.Start(testKey, []string{"a", "b"})
	for i, day := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
		c.set(day)
		for j := range 300 {
			l.Record("a", spread(1000*i+j))
		}
		if err := l.Save(); err != nil {
			t.Fatal(err)
		}
	}
	l.forget()
	if err := l.Save(); err != nil { // which finds what was forgotten in the file
		t.Fatal(err)
	}
	s := l.Snapshot("a")
	if s.Len() != 600 || s.Known().String() != "2026-03-02" {
		t.Errorf("%d entries known from %s on, want 600 from 2026-03-02 on", s.Len(), s.Known())
	}
	wantLast(t, s, spread(0), "never")
	wantLast(t, s, spread(1000), "2026-03-02")

	// Today has more than is taken: certainty ends today.
	for i := range 2 * limit {
		l.Record("a", spread(10000+i))
	}
	l.forget()
	if s = l.Snapshot("a"); s.Len() > limit+limit/4 || s.Known().String() != "2026-03-04" {
		t.Errorf("%d entries known from %s on, want at most %d from 2026-03-04 on", s.Len(), s.Known(), limit+limit/4)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "the oldest are dropped") {
		t.Errorf("the log says %q", text)
	}
	again, _ := open(t, dir, c, Options{MaxEntries: limit})
	if s := again.Snapshot("a"); s.Known().String() != "2026-03-04" || s.Len() != l.Snapshot("a").Len() {
		t.Errorf("after a restart %d entries known from %s on", s.Len(), s.Known())
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestForgetsByItself: a Log that has more entries than it should makes room.
func TestForgetsByItself(t *testing.T) {
	const limit = 8
	c := &calendar{}
	c.set("2026-03-01")
	l, _ := open(t, t.TempDir(), c, Options{MaxEntries: limit})
	for i := range limit {
		l.Record("a", spread(i))
	}
	c.set("2026-03-02")
	l.Record("a", spread(limit))
	for late := time.Now().Add(20 * time.Second); l.Snapshot("a").Len() != 1; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("%d entries, want today's alone", l.Snapshot("a").Len())
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Where all entries are of today there is no room to be made, and nobody looks for
// it at each new one; on the next day there is.
func TestForgetNothing(t *testing.T) {
	const limit = 8
	x := newList(time.Now())
	today := Day(20000)
	var full bool
	for i := range limit + 1 {
		full = x.record(spread(i), today, limit)
	}
	if !full {
		t.Error("not full")
	}
	if n, _ := x.forget(today, limit); n != 0 {
		t.Errorf("%d of today's were forgotten", n)
	}
	if x.record(spread(limit+1), today, limit) {
		t.Error("room is asked for again, and there is none")
	}
	if !x.record(spread(limit+2), today+1, limit) {
		t.Error("no room is asked for, and there is some")
	}
	if n, _ := x.forget(today+1, limit); n == 0 {
		t.Error("nothing was forgotten")
	}
}

// TestClock sets the clock back and forth.
func TestClock(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	c.set("2030-01-01")
	l, _ := open(t, dir, c, Options{})
	l.Record("a", spread(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.set("2026-03-01")
	l, _ = open(t, dir, c, Options{})
	l.Record("a", spread(2))
	s := l.Snapshot("a")
	wantLast(t, s, spread(1), "2026-03-01")
	if s.Known().String() != "2026-03-01" || l.Today("a") != 1 {
		t.Errorf("known from %s on, %d hits", s.Known(), l.Today("a"))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNotWritable cannot write, says so, and goes on.
func TestNotWritable(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	c.set("2026-03-01")
	l, _ := open(t, dir, c, Options{})
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Record("a", spread(1))
	if err := l.Save(); err == nil || !strings.Contains(err.Error(), `list "a"`) {
		t.Errorf("Save: %v, want an error that names the list", err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // what was not written before is now
		t.Fatal(err)
	}
	if s, err := Read(dir, "a/hits", testKey); err != nil || s.Len() != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "a", ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestModel compares a Log with a plain map, over random matches by several
// goroutines, days and restarts.
func TestModel(t *testing.T) {
	dir, c := t.TempDir(), &calendar{}
	random := rand.New(rand.NewPCG(1, 2))
	model := map[uint64]Day{}
	for day := range 20 {
		today := c.set(fmt.Sprintf("2026-03-%02d", day+1))
		l, _ := open(t, dir, c, Options{})
		var wg sync.WaitGroup
		for range 4 {
			var batch []uint64
			for range 200 {
				hash := spread(random.IntN(3000))
				batch = append(batch, hash)
				model[hash] = today
			}
			wg.Go(func() {
				for i, hash := range batch {
					l.Record("a", hash)
					if i == 100 {
						if err := l.Save(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		if n := l.Today("a"); n != 800 {
			t.Fatalf("%d hits on day %d, want 800", n, day)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Read(dir, "a/hits", testKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if got, want := s.Last(spread(i)), model[spread(i)]; got != want {
			t.Fatalf("entry %d: last match on %v, want %v", i, got, want)
		}
	}
	if s.Len() != len(model) {
		t.Errorf("%d entries, want %d", s.Len(), len(model))
	}
}

// FuzzDecode wants no panic, and of what is understood the same bytes again.
func FuzzDecode(f *testing.F) {
	s := &Snapshot{Since: time.Unix(1e9, 0), forgotten: 3, today: 5, hashes: []uint64{1, 1 << 60}, days: []Day{7, 9}}
	f.Add(s.encode(testKey))
	f.Add((&Snapshot{Since: time.Unix(0, 0)}).encode(testKey))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b, testKey)
		if err != nil {
			return
		}
		if again := s.encode(testKey); !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	l := New(Options{})
	for i := range 1000 {
		l.Record("a", spread(i))
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			l.Record("a", spread(i%1000))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				l.Record("a", spread(i%1000))
			}
		})
	})
}
