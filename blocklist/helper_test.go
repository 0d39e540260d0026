package blocklist

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/disposable"
)

// unlessShort is n, or with -short, as for the race detector, so many.
func unlessShort(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) string {
	tb.Helper()
	must(tb, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// inDir returns a path in a new directory.
func inDir(tb testing.TB, name string) string { return filepath.Join(tb.TempDir(), name) }

// fileList is a list and where its entries are.
type fileList struct {
	List
	Paths                    []string
	Exact, AllowPublicSuffix bool
	Format                   listfile.Format
}

// fileConfig is what a Set is built from.
type fileConfig struct {
	Lists      []fileList
	Filter     Filter
	FilterOnly bool
	Monitor    bool
	OnHit      func(list string, hash uint64)
}

func blockList(name string, paths ...string) fileList {
	return fileList{List: List{Name: name, Action: verdict.Reject}, Paths: paths}
}

func allowList(name string, paths ...string) fileList {
	return fileList{List: List{Name: name, Type: Allow}, Paths: paths}
}

// fast is a configuration of lists.
func fast(lists ...fileList) fileConfig { return fileConfig{Lists: lists} }

// disposableConfig is the disposable list as a file, and a configuration with it.
func disposableConfig(tb testing.TB) (fileConfig, string) {
	path := write(tb, inDir(tb, "disposable.txt"), string(disposable.Text()))
	return fast(blockList("disposable", path)), path
}

// build makes a Set of lists, as a Store does without guards.
func build(tb testing.TB, c fileConfig) *Set {
	tb.Helper()
	sc := SetConfig{Filter: c.Filter, FilterOnly: c.FilterOnly, Monitor: c.Monitor, OnHit: c.OnHit, Keys: ProcessKeys()}
	for _, l := range c.Lists {
		options := listfile.Options{Allow: l.Type == Allow, PerRecipient: l.PerRecipient, Exact: l.Exact, AllowPublicSuffix: l.AllowPublicSuffix, Format: l.Format}
		b := segment.NewBuilder(segment.BuildOptions{Key: ProcessKeys().Segment()})
		stats := ListStats{Name: l.Name}
		for file, path := range l.Paths {
			text, err := os.ReadFile(path)
			must(tb, err)
			stats.Entries += addEntries(tb, b, file, string(text), options)
		}
		s, err := b.Finish(tb.Context(), "", segment.Header{})
		must(tb, err)
		sc.Lists = append(sc.Lists, SetList{List: l.List, Index: NewIndex(s, l.Paths, nil), Stats: stats})
	}
	set, err := NewSet(tb.Context(), sc)
	must(tb, err)
	return set
}

// addEntries adds the entries of a text to a segment, and returns how many there are.
func addEntries(tb testing.TB, b *segment.Builder, file int, text string, options listfile.Options) int {
	tb.Helper()
	adder := b.Adder()
	in := listfile.NewReader(strings.NewReader(text), options)
	for e, err := range in.All() {
		must(tb, err)
		must(tb, adder.Add(segment.Entry{
			For: e.For, Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Defer: e.Defer, Until: e.Until,
			File: file, Line: e.Line, Reason: e.Reason, Note: e.Note,
		}))
	}
	return in.Result().Entries
}

// makeIndexOf makes an index of entries, or of lines for recipients, without a file.
func makeIndexOf(tb testing.TB, perRecipient bool, entries ...string) *Index {
	tb.Helper()
	b := segment.NewBuilder(segment.BuildOptions{Key: ProcessKeys().Segment()})
	// Nothing has expired yet.
	addEntries(tb, b, 0, strings.Join(entries, "\n"), listfile.Options{AllowPublicSuffix: true, PerRecipient: perRecipient, Now: 1})
	s, err := b.Finish(tb.Context(), "", segment.Header{})
	must(tb, err)
	return NewIndex(s, []string{"/list"}, nil)
}

// filePart is a PartFile.
type filePart struct {
	path     string
	readOnly bool
}

func (p filePart) CanSave() bool    { return !p.readOnly }
func (p filePart) Scratch() Scratch { return new(memoryScratch) }

func (p filePart) Open() (*io.SectionReader, io.Closer, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	return io.NewSectionReader(f, 0, info.Size()), f, err
}

func (p filePart) Save(write func(io.Writer) error) error {
	f, err := os.Create(p.path + ".new") // an open file keeps what it had
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close(), os.Rename(f.Name(), p.path))
}

func parse(tb testing.TB, address string) sender.Address {
	tb.Helper()
	a, err := sender.Parse(address)
	if err != nil {
		tb.Fatalf("%q: %v", address, err)
	}
	return a
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
