package store

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// patient bounds waits for what must happen soon. It is no measurement: only a
// test that is going to fail takes so long.
const patient = 20 * time.Second

// unlessShort is n, or with -short, as for the race detector, so many.
func unlessShort(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

// disposableInvalid is how many of the real list's domains are public suffixes,
// which are no entries.
const disposableInvalid = 3

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) string {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

// replace puts a text where a list is or is to be, as one step: a Store that looks
// meanwhile finds no empty file, which is a list too where there was none.
func replace(tb testing.TB, path, text string) {
	tb.Helper()
	dir, name := filepath.Split(path)
	if err := os.Rename(write(tb, dir+".new-"+name, text), path); err != nil {
		tb.Fatal(err)
	}
}

// inDir is a path in a new directory, free of symbolic links and readable for
// all (see asStranger).
func inDir(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func blockList(name string, paths ...string) List {
	return List{Name: name, Paths: paths, Action: verdict.Reject}
}

func allowList(name string, paths ...string) List {
	return List{Name: name, Paths: paths, Type: blocklist.Allow}
}

// advise is an Advise.
func advise(list string, r Remedy) string {
	return [...]string{"accept ", "retry ", "fetch ", "fetch again ", "unpin ", "restore "}[r] + list
}

// fewProbes is the number of probes of a Store's filters in tests. The default takes
// seconds with the race detector.
const fewProbes = 2000

// fast is a configuration with a short debounce time and no polls to speak of,
// so that it is events that tests wait for.
func fast(lists ...List) Config {
	return Config{Lists: lists, Debounce: 20 * time.Millisecond, PollInterval: time.Hour, Advise: advise, Probes: fewProbes}
}

func openStore(tb testing.TB, c Config) *Store {
	tb.Helper()
	s, err := Open(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// openStill opens a store that looks at its files when Rescan is called, and at
// no other time.
func openStill(tb testing.TB, c Config) *Store {
	tb.Helper()
	s := newStore(c, false)
	if err := s.load(context.Background(), c); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func build(tb testing.TB, c Config) *blocklist.Set {
	tb.Helper()
	set, _, err := Build(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func parse(tb testing.TB, address string) sender.Address {
	tb.Helper()
	a, err := sender.Parse(address)
	if err != nil {
		tb.Fatalf("%q: %v", address, err)
	}
	return a
}

// await waits for a generation.
func await(tb testing.TB, s *Store, generation uint64) *blocklist.Set {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	set, err := s.Await(ctx, generation)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// eventually waits until nothing is wrong any more, of which wrong tells: what goes
// on in the background takes its time.
func eventually(tb testing.TB, wrong func() string) {
	tb.Helper()
	for late := time.Now().Add(patient); ; runtime.Gosched() {
		what := wrong()
		if what == "" {
			return
		}
		if time.Now().After(late) {
			tb.Error(what)
			return
		}
	}
}

// rescan has the store look at its files, and returns the Set then.
func rescan(tb testing.TB, s *Store) (*blocklist.Set, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	err := s.Rescan(ctx)
	return s.Set(), err
}

// makeVersion makes a version of entries, without a file.
func makeVersion(tb testing.TB, entries ...string) *version {
	tb.Helper()
	b := segment.NewBuilder(segment.BuildOptions{Key: blocklist.ProcessKeys().Segment()})
	adder := b.Adder()
	in := listfile.NewReader(strings.NewReader(strings.Join(entries, "\n")), listfile.Options{AllowPublicSuffix: true, Now: 1}) // nothing has expired yet
	in.Problem = func(p listfile.Problem) { tb.Fatal(p) }
	for e, err := range in.All() {
		must(tb, err)
		must(tb, adder.Add(segment.Entry{Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Until: e.Until, Line: e.Line, Reason: e.Reason}))
	}
	index, err := b.Finish(context.Background(), "", segment.Header{})
	must(tb, err)
	v := newVersion(index, content{Files: []blocklist.FileStats{{Path: "/list"}}}, nil, new(bitsFile))
	v.Entries = in.Result().Entries
	return v
}

// anyFile opens the files of lists wherever they are.
var anyFile Opener

// newSource is a list that no Store knows.
func newSource(l *List) *source {
	return &source{list: l, options: (&Config{}).readOptions(l), state: openState("", false, slog.New(slog.DiscardHandler))}
}

// lookup is what a Set or a View says of a sender.
func lookup(tb testing.TB, lists interface {
	Lookup(verdict.Stage, sender.Address) (verdict.Verdict, error)
}, stage verdict.Stage, a sender.Address) verdict.Verdict {
	tb.Helper()
	d, err := lists.Lookup(stage, a)
	if err != nil {
		tb.Fatalf("%s: %v", a, err)
	}
	return d
}

// listed is the action for a reverse-path.
func listed(tb testing.TB, s *blocklist.Set, address string) verdict.Action {
	tb.Helper()
	return lookup(tb, s, verdict.Envelope, parse(tb, address)).Action
}

// logBuffer collects a log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines are the lines that hold a text.
func (b *logBuffer) lines(with string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// partKeys is from how many keys on a list's part of the filter is kept.
const partKeys = 1 << 15

// heap returns how much of the heap is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one freed of pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// without is what of a is not in b, or there less often, sorted.
func without(a, b []string) []string {
	in := map[string]int{}
	for _, s := range b {
		in[s]++
	}
	var rest []string
	for _, s := range a {
		if in[s]--; in[s] < 0 {
			rest = append(rest, s)
		}
	}
	slices.Sort(rest)
	return rest
}

// versionAt returns the version of a list that serves.
func versionAt(s *Store, list int) *version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live.versions[list]
}

// ListDir returns the path of a list's directory in a state directory.
func ListDir(stateDir, list string) string { return filepath.Join(stateDir, ListName(list)) }
