package listfiles_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
)

// lists is a directory with lists whose indexes a gate has stored.
type lists struct {
	*testing.T
	dir    string
	config *config.Config
}

const listsConfig = `
[state]
dir = "state"
[[list]]
name = "one"
path = "one.txt"
[[list]]
name = "several"
path = "d/*.txt"
[[list]]
name = "hosts"
path = "hosts"
format = "hosts"
[[list]]
name = "odd"
path = "odd.txt"
`

// newLists writes lists, and has a store read them.
func newLists(t *testing.T) *lists {
	l := &lists{T: t, dir: t.TempDir()}
	l.write("config.toml", listsConfig)
	l.write("one.txt", "# one\nspam.example  # a reason ## a note\nuser@other.example\n!press@spam.example\n")
	l.write("d/a.txt", "*.example  # first file\nuser@  # anywhere\n")
	l.write("d/b.txt", "other.example # until=2999-01-01 second file\n")
	l.write("hosts", "0.0.0.0 ads.spam.example\n0.0.0.0 spam.example\n")
	l.write("odd.txt", "gone.example # until=2001-01-01\nspam.example\nSPAM.example # again\ngmail.com\n")
	l.load()
	l.serve()
	return l
}

func (l *lists) write(name, content string) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		l.Fatal(err)
	}
}

func (l *lists) load() {
	l.Helper()
	var err error
	if l.config, err = config.Load(filepath.Join(l.dir, "config.toml")); err != nil {
		l.Fatal(err)
	}
}

// serve stores the indexes, as a gate does.
func (l *lists) serve() {
	l.Helper()
	c, err := setup.BlocklistConfig(l.config, nil)
	if err != nil {
		l.Fatal(err)
	}
	s, err := store.Open(context.Background(), c)
	if err != nil {
		l.Fatal(err)
	}
	if err := s.Close(); err != nil {
		l.Fatal(err)
	}
}

// settle makes the stored stamps say that the files had not changed for a while when
// they were read, so that their attributes alone decide.
func (l *lists) settle() {
	l.Helper()
	type stamp struct {
		Path             string
		Device, Inode    uint64
		Size             int64
		Modified, Change int64
		Digest           []byte
		Looked           time.Time
	}
	for _, list := range listfiles.Readable(l.config, os.Stderr) {
		var stamps []stamp
		for _, path := range list.Paths {
			info, err := os.Stat(path)
			if err != nil {
				l.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				l.Fatal(err)
			}
			sum, st := sha256.Sum256(content), info.Sys().(*syscall.Stat_t)
			stamps = append(stamps, stamp{path, st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano(), sum[:], time.Now().Add(time.Hour)})
		}
		text, err := json.Marshal(map[string]any{"Stamps": stamps})
		if err != nil {
			l.Fatal(err)
		}
		l.write(filepath.Join("state", filepath.FromSlash(store.ListName(list.Name)), "current.json"), string(text))
	}
}

var asked = []string{
	"spam.example", "user@other.example", "press@spam.example", "*.example", "user@", "other.example", "ads.spam.example", "gone.example", "gmail.com", "absent.example",
}

// check compares what is found by way of the indexes with what the files say.
func (l *lists) check(indexed ...string) {
	l.Helper()
	all := listfiles.Readable(l.config, os.Stderr)
	indexes := listfiles.OpenIndexes(context.Background(), l.config)
	var have []string
	for _, list := range all {
		if indexes.Of(list) != nil {
			have = append(have, list.Name)
		}
	}
	if !slices.Equal(have, indexed) {
		l.Errorf("indexes of %v, want %v", have, indexed)
	}
	for _, key := range asked {
		var got, want []string
		note := func(to *[]string) func(listfiles.Located) error {
			return func(f listfiles.Located) error {
				if f.Entry.Key == key {
					*to = append(*to, fmt.Sprintf("%+v", f.At()))
				}
				return nil
			}
		}
		scan := listfiles.NewScan(context.Background(), nil, os.Stderr)
		if err := scan.Keys(all, indexes, []string{key}, note(&got)); err != nil {
			l.Fatal(err)
		}
		if err := scan.Lists(all, note(&want)); err != nil {
			l.Fatal(err)
		}
		if !slices.Equal(got, want) {
			l.Errorf("%s: found\n%v, want\n%v", key, got, want)
		}
	}
}

func TestIndexes(t *testing.T) {
	l := newLists(t)
	l.check("one", "several", "hosts", "odd")
	l.settle()
	l.check("one", "several", "hosts", "odd")

	// The attributes decide then: an open file is known to be what the index is of.
	list := listfiles.Readable(l.config, os.Stderr)[0]
	info, err := os.Stat(list.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	index := listfiles.OpenIndexes(context.Background(), l.config).Of(list)
	if !index.Describes(list.Paths[0], info) || index.Describes("other", info) {
		t.Error("the index does not know its file")
	}
}

// An index that may not be of the files as they are is not used.
func TestStaleIndexes(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(l *lists)
		left   []string
	}{
		{"another entry", func(l *lists) { l.write("one.txt", "other.example\n") }, []string{"several", "hosts", "odd"}},
		{"the same size and time", func(l *lists) {
			path := filepath.Join(l.dir, "one.txt")
			info, err := os.Stat(path)
			if err != nil {
				l.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				l.Fatal(err)
			}
			l.write("one.txt", strings.Replace(string(text), "spam.example", "span.example", 1))
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				l.Fatal(err)
			}
		}, []string{"several", "hosts", "odd"}},
		{"another file, the same size and time", func(l *lists) {
			path := filepath.Join(l.dir, "hosts")
			info, err := os.Stat(path)
			if err != nil {
				l.Fatal(err)
			}
			l.write("hosts.new", "0.0.0.0 ads.spam.example\n0.0.0.0 absent.exampl\n"[:info.Size()])
			if err := os.Rename(path+".new", path); err != nil {
				l.Fatal(err)
			}
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				l.Fatal(err)
			}
		}, []string{"one", "several", "odd"}},
		{"the same content, touched", func(l *lists) {
			if err := os.Chtimes(filepath.Join(l.dir, "one.txt"), time.Time{}, time.Now()); err != nil {
				l.Fatal(err)
			}
		}, []string{"one", "several", "hosts", "odd"}},
		{"a file more", func(l *lists) { l.write("d/c.txt", "spam.example\n") }, []string{"one", "hosts", "odd"}},
		{"a file less", func(l *lists) { os.Remove(filepath.Join(l.dir, "d", "a.txt")) }, []string{"one", "hosts", "odd"}},
		{"files in another order", func(l *lists) {
			d := filepath.Join(l.dir, "d")
			for _, names := range [][2]string{{"a.txt", "x"}, {"b.txt", "a.txt"}, {"x", "b.txt"}} {
				if err := os.Rename(filepath.Join(d, names[0]), filepath.Join(d, names[1])); err != nil {
					l.Fatal(err)
				}
			}
		}, []string{"one", "hosts", "odd"}},
		{"read in another way", func(l *lists) {
			l.write("config.toml", strings.Replace(listsConfig, `path = "one.txt"`, "path = \"one.txt\"\nmatch = \"exact\"", 1))
			l.load()
		}, []string{"several", "hosts", "odd"}},
		{"no key", func(l *lists) { os.Remove(filepath.Join(l.dir, "state", "lists.key")) }, nil},
		{"another key", func(l *lists) {
			if err := os.WriteFile(filepath.Join(l.dir, "state", "lists.key"), make([]byte, 32), 0o600); err != nil {
				l.Fatal(err)
			}
		}, nil},
		{"no state directory", func(l *lists) { os.RemoveAll(filepath.Join(l.dir, "state")) }, nil},
		{"a state directory of others", func(l *lists) {
			if err := os.Chmod(filepath.Join(l.dir, "state"), 0o777); err != nil {
				l.Fatal(err)
			}
		}, nil},
		{"a cut index", func(l *lists) {
			if err := os.Truncate(filepath.Join(l.dir, "state", "lists", "one", "current.seg"), 300); err != nil {
				l.Fatal(err)
			}
		}, []string{"several", "hosts", "odd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLists(t)
			l.settle()
			test.change(l)
			l.check(test.left...)
		})
	}
}

// Damage in an index is noticed when it is read, and then the text is.
func TestDamagedIndex(t *testing.T) {
	l := newLists(t)
	path := filepath.Join(l.dir, "state", "lists", "one", "current.seg")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pos := strings.Index(string(content), "spam.example")
	content[pos] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	l.check("one", "several", "hosts", "odd")
}

// Relations are the same with indexes and without, also after an edit that the indexes do
// not know of.
func TestRelations(t *testing.T) {
	l := newLists(t)
	all := listfiles.Readable(l.config, os.Stderr)
	item := filepath.Join(l.dir, "one.txt")
	relations := func(x *listfiles.Indexes, edits []listfiles.Edit) (found []string) {
		r := listfiles.NewRelations()
		var entries []listfile.Entry
		for _, text := range []string{"spam.example", "@spam.example", "a@sub.spam.example", "example.org", "new.example"} {
			e, err := listfile.ParseEntry(text, listfile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r.AskWithin(e)
			entries = append(entries, e)
		}
		if err := r.Read(context.Background(), all, x, edits, os.Stderr); err != nil {
			t.Fatal(err)
		}
		unique := map[string]bool{} // an index has one of several lines with one key
		for _, e := range entries {
			within, more := r.Within(e)
			for _, f := range slices.Concat(r.Same(e), r.Covering(e), within) {
				if text := fmt.Sprintf("%s: %v", e.Key, f.At()); f.List.Name != "odd" && !unique[text] {
					unique[text] = true
					found = append(found, text)
				}
			}
			found = append(found, fmt.Sprint(more))
		}
		return found
	}
	opened := listfiles.OpenIndexes(context.Background(), l.config)
	before := relations(opened, nil)
	if want := relations(nil, nil); !slices.Equal(before, want) || len(want) < 10 {
		t.Fatalf("found\n%s\nwant\n%s", strings.Join(before, "\n"), strings.Join(want, "\n"))
	}
	e, err := listfile.ParseEntry("new.example", listfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Line = 3
	l.write("one.txt", "# one\nuser@other.example\nnew.example\n")
	edits := []listfiles.Edit{{Path: item, Removed: []int{2}, Replaced: []int{4}, Added: []listfile.Entry{e}}}
	after := relations(opened, edits)
	if want := relations(nil, nil); !slices.Equal(after, want) || slices.Equal(after, before) {
		t.Errorf("after the edit\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(want, "\n"))
	}
	if listedit.LineNow(4, []int{2, 5}) != 3 {
		t.Error("the lines after a removed one keep their numbers")
	}
}
