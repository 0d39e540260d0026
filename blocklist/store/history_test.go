package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/atomicfile"
)

// goLive writes a list and waits until it is live and kept.
func goLive(t *testing.T, s *Store, path, text string) {
	t.Helper()
	write(t, path, text)
	_, err := rescan(t, s)
	must(t, err)
	s.running.Wait()
}

// kept extracts the versions of the list, the newest first.
func kept(t *testing.T, stateDir string) (texts []string) {
	t.Helper()
	versions, err := Versions(stateDir, "spam")
	must(t, err)
	for _, v := range versions {
		must(t, ExtractVersion(stateDir, "spam", v.ID, func(path string, content io.Reader) error {
			text, err := io.ReadAll(content)
			texts = append(texts, string(text))
			return err
		}))
	}
	return texts
}

// The versions that went live are kept, each content once, the newest first.
func TestHistory(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "one.example\n")
	c := stateful(t, blockList("spam", path))
	c.History = 2
	s := openStill(t, c)
	s.running.Wait()
	for _, step := range []struct {
		text string
		want []string
	}{
		{"one.example\n", []string{"one"}},
		{"two.example\n", []string{"two", "one"}},
		{"three.example # a reason\n", []string{"three", "two", "one"}},
		{"two.example\n", []string{"two", "three", "one"}},
		{"four.example\n", []string{"four", "two", "three"}},
	} {
		goLive(t, s, path, step.text)
		got := kept(t, c.StateDir)
		if len(got) != len(step.want) || !slices.EqualFunc(got, step.want, strings.HasPrefix) || got[0] != step.text {
			t.Errorf("after %q: %q, want %q", step.text, got, step.want)
		}
	}
	versions, err := Versions(c.StateDir, "spam")
	must(t, err)
	sum, err := anyFile.ContentSum([]string{path})
	must(t, err)
	v := versions[0]
	if v.Sum != sum || v.Entries != 1 || v.Bytes != int64(len("four.example\n")) || !slices.Equal(v.Files, []string{path}) || v.Time.IsZero() || !strings.HasSuffix(v.ID, sum[:12]) {
		t.Errorf("%+v", v)
	}
	// A list that is held, and a start, keep nothing more.
	write(t, path, "")
	rescan(t, s)
	must(t, s.Close())
	once(t, c)
	if got := kept(t, c.StateDir); len(got) != 3 {
		t.Errorf("%q", got)
	}
	left := slices.DeleteFunc(tree(t, filepath.Join(ListDir(c.StateDir, "spam"), historyName)), func(p string) bool {
		return strings.HasSuffix(p, "/0.zst") || strings.HasSuffix(p, "/"+metaName)
	})
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Two processes that have one version go live at the same time, or one a little
// later, keep it once, under the later time.
func TestHistoryOfTwoProcesses(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "one.example\n")
	c := stateful(t, blockList("spam", path))
	c.History = 2
	s := openStill(t, c)
	s.running.Wait()
	dir := ListName("spam") + "/" + historyName
	now := time.Now().UTC().Add(time.Hour)
	for _, live := range []time.Time{now, now, now.Add(-time.Minute), now.Add(time.Minute)} {
		must(t, archiveVersion(context.Background(), s.state.tree, dir, archiveJob{versionAt(s, 0), live, 2}, func() {}))
	}
	versions, err := Versions(c.StateDir, "spam")
	must(t, err)
	if len(versions) != 1 || !versions[0].Time.Equal(now.Add(time.Minute).Truncate(time.Millisecond)) {
		t.Errorf("%+v", versions)
	}
}

// A list of several files, packed ones among them, comes back as it was.
func TestHistoryOfManyFiles(t *testing.T) {
	dir := inDir(t, "")
	a := write(t, filepath.Join(dir, "a.txt"), "one.example\r\n\xef\xbb\xbf# no line end")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "two.example\n")
	must(t, z.Close())
	b := write(t, filepath.Join(dir, "b.txt"), packed.String())
	c := stateful(t, blockList("spam", dir+"/*.txt"))
	c.History = 1
	s := openStill(t, c)
	s.running.Wait()
	versions, err := Versions(c.StateDir, "spam")
	must(t, err)
	if len(versions) != 1 {
		t.Fatalf("%+v", versions)
	}
	var got []string
	must(t, ExtractVersion(c.StateDir, "spam", versions[0].ID, func(path string, content io.Reader) error {
		got = append(got, path)
		text, err := io.ReadAll(content)
		must(t, err)
		if current, err := os.ReadFile(path); err != nil || !bytes.Equal(current, text) {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		return nil
	}))
	if !slices.Equal(got, []string{a, b}) {
		t.Errorf("%q, want %q", got, []string{a, b})
	}
}

// A kept version that is damaged is not given out as if it were whole, nor one
// that is not there.
func TestExtractDamaged(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(500, 0))
	c := stateful(t, blockList("spam", path))
	c.History = 1
	s := openStill(t, c)
	s.running.Wait()
	versions, err := Versions(c.StateDir, "spam")
	must(t, err)
	id := versions[0].ID
	packed := filepath.Join(ListDir(c.StateDir, "spam"), historyName, id, packedName(0))
	text, err := os.ReadFile(packed)
	must(t, err)
	read := func(path string, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	for name, damaged := range map[string][]byte{
		"cut":     text[:len(text)/2],
		"changed": append(slices.Clone(text[:len(text)-9]), "123456789"...),
		"emptied": nil,
	} {
		write(t, packed, string(damaged))
		if err := ExtractVersion(c.StateDir, "spam", id, read); err == nil || !strings.Contains(err.Error(), packed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, packed, string(text))
	must(t, ExtractVersion(c.StateDir, "spam", id, read))
	for _, id := range []string{"", ".", "..", "other", "../history/" + id, "other/../" + id} {
		if err := ExtractVersion(c.StateDir, "spam", id, read); err == nil {
			t.Errorf("%q: no error", id)
		}
	}
	if versions, err := Versions(c.StateDir, "other"); len(versions) != 0 || err != nil {
		t.Errorf("%v, %v", versions, err)
	}
}

// What serves is kept, although it is from a start that failed for another list,
// or from a process that was stopped first.
func TestHistoryOfStored(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "one.example\n")
	other := blockList("other", write(t, inDir(t, "other.txt"), "other.example\n"))
	other.MinEntries = 2
	c := stateful(t, blockList("spam", path), other)
	c.History = 2
	if _, err := Open(t.Context(), c); !errors.Is(err, ErrFew) {
		t.Fatal(err)
	}
	if got := kept(t, c.StateDir); len(got) != 0 {
		t.Errorf("kept by a start that failed: %q", got)
	}
	c.Lists[1].MinEntries = 0
	s := openStill(t, c)
	if versionAt(s, 0).fresh {
		t.Error("read again, so this tests nothing")
	}
	s.running.Wait()
	if got := kept(t, c.StateDir); !slices.Equal(got, []string{"one.example\n"}) {
		t.Errorf("kept: %q", got)
	}
	goLive(t, s, path, "two.example\n")
	if got := kept(t, c.StateDir); !slices.Equal(got, []string{"two.example\n", "one.example\n"}) {
		t.Errorf("kept: %q", got)
	}
	before, err := Versions(c.StateDir, "spam")
	must(t, err)
	must(t, s.Close())
	s = openStill(t, c)
	s.running.Wait()
	if after, err := Versions(c.StateDir, "spam"); err != nil || after[0].ID != before[0].ID || len(after) != 2 {
		t.Errorf("a start has changed %+v to %+v, %v", before, after, err)
	}
	must(t, s.Close())

	// Its files hold something else by now: then nothing is made up.
	must(t, os.RemoveAll(filepath.Join(ListDir(c.StateDir, "spam"), historyName)))
	write(t, path, "")
	s = openStill(t, c)
	s.running.Wait()
	if got := kept(t, c.StateDir); len(got) != 0 || !s.Set().Stats().Lists[0].LastGood {
		t.Errorf("kept: %q", got)
	}
}

// A reload that begins to keep versions keeps what serves.
func TestHistoryFromReloadOn(t *testing.T) {
	c := stateful(t, blockList("spam", write(t, inDir(t, "spam.txt"), "one.example\n")))
	s := openStill(t, c)
	s.running.Wait()
	c.History = 2
	must(t, s.Reload(t.Context(), c))
	s.running.Wait()
	if got := kept(t, c.StateDir); !slices.Equal(got, []string{"one.example\n"}) {
		t.Errorf("kept: %q", got)
	}
}

// What could not be kept is kept with the next change of any list.
func TestHistoryTriedAgain(t *testing.T) {
	path := write(t, inDir(t, "other.txt"), "other.example\n")
	c := stateful(t, blockList("spam", write(t, inDir(t, "spam.txt"), "one.example\n")), blockList("other", path))
	c.History = 2
	history := filepath.Join(ListDir(c.StateDir, "spam"), historyName)
	must(t, os.MkdirAll(filepath.Dir(history), 0o700))
	write(t, history, "in the way")
	s := openStill(t, c)
	s.running.Wait()
	must(t, os.Remove(history))
	goLive(t, s, path, "another.example\n")
	if got := kept(t, c.StateDir); !slices.Equal(got, []string{"one.example\n"}) {
		t.Errorf("kept: %q", got)
	}
}

// TestHistoryBeforeLargeChange: small changes do not push the version before a large one out, until
// that is old; large ones are bounded, too.
func TestHistoryBeforeLargeChange(t *testing.T) {
	now := time.Now().UTC()
	keep := func(age time.Duration, entries ...int) (left []int) {
		t.Helper()
		tree := atomicfile.In(t.TempDir())
		must(t, tree.MakeDirs("list/history"))
		for i, n := range entries {
			id := now.Add(-age+time.Duration(i)*time.Second).Format(versionTime) + "-0123456789ab"
			must(t, tree.MakeDirs("list/history/"+id))
			text, err := json.Marshal(versionMeta{Entries: n})
			must(t, err)
			must(t, tree.WriteFile("list/history/"+id+"/"+metaName, "list/history", newPattern, text))
		}
		must(t, dropOld(tree, "list/history", 2))
		names, err := historyNames(tree, "list/history")
		must(t, err)
		for _, name := range names {
			m, err := readVersionMeta(tree, "list/history/"+name)
			must(t, err)
			left = append(left, m.Entries)
		}
		return left
	}
	many := make([]int, 60)
	for i := range many {
		many[i] = i % 2 * 5000
	}
	for _, tt := range []struct {
		age     time.Duration
		entries []int
		want    []int
	}{
		{time.Hour, []int{1, 2, 3, 4, 5}, []int{3, 4, 5}},
		{time.Hour, []int{40, 41, 1541, 1542, 1543, 1544, 1545}, []int{41, 1543, 1544, 1545}},
		{time.Hour, []int{20_000, 19_000, 19_001, 19_002, 19_003}, []int{20_000, 19_001, 19_002, 19_003}},
		{time.Hour, []int{200, 170, 171, 172, 173}, []int{200, 171, 172, 173}},
		{time.Hour, []int{9, 18, 19, 20, 21}, []int{19, 20, 21}},
		{largeAge + time.Hour, []int{40, 41, 1541, 1542, 1543, 1544, 1545}, []int{1543, 1544, 1545}},
	} {
		if got := keep(tt.age, tt.entries...); !slices.Equal(got, tt.want) {
			t.Errorf("%v ago %v: %v are left, want %v", tt.age, tt.entries, got, tt.want)
		}
	}
	if got := keep(time.Hour, many...); len(got) != largeMost+1 {
		t.Errorf("%d large changes leave %d versions, want %d", len(many), len(got), largeMost+1)
	}
}
