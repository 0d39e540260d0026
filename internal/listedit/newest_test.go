package listedit

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/listfile"
)

// TestNewest reads logs from the newest record to the oldest: also long lines, packed files,
// torn lines, and ones that are not records.
func TestNewest(t *testing.T) {
	l := &Log{Dir: t.TempDir()}
	instant := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	record := func(n int) string {
		return fmt.Sprintf(`{"time":%q,"uid":0,"command":"add","what":"n%d","why":%q}`+"\n", instant.Add(time.Duration(n)*time.Hour).Format(time.RFC3339), n, strings.Repeat("x", n*n*1000))
	}
	write := func(name, text string, changed time.Time) {
		if err := os.WriteFile(filepath.Join(l.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(l.Dir, name), changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, record(0)+record(1)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	write("audit.log-20261120.gz", packed.String(), instant.Add(2*time.Hour))
	write("audit.log.1", record(2)+"nonsense\n\n"+`{"time":"2026-`+record(3), instant.Add(4*time.Hour))
	write("audit.log", record(4)+record(30)+strings.TrimSuffix(record(5), "\n"), instant.Add(6*time.Hour))
	search := func(since time.Time, most int) (got []string) {
		complete, err := l.Newest(context.Background(), Search{Since: since, Found: func(r Record) bool {
			got = append(got, r.What)
			return len(got) < most
		}})
		if err != nil || !complete {
			t.Errorf("complete %t, %v", complete, err)
		}
		return got
	}
	if got := search(time.Time{}, 100); !slices.Equal(got, []string{"n5", "n30", "n4", "n3", "n2", "n1", "n0"}) {
		t.Errorf("%q", got)
	}
	if got := search(time.Time{}, 2); !slices.Equal(got, []string{"n5", "n30"}) {
		t.Errorf("two: %q", got)
	}
	if got := search(instant.Add(3*time.Hour), 100); !slices.Equal(got, []string{"n5", "n30", "n4", "n3"}) {
		t.Errorf("since: %q", got)
	}
	write("audit.log.2.xz", "x", instant)
	complete, err := l.Newest(context.Background(), Search{Found: func(Record) bool { return true }})
	if complete || err != nil {
		t.Errorf("with a file that cannot be read: %t, %v", complete, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Newest(ctx, Search{Found: func(Record) bool { return true }}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	none := &Log{Dir: filepath.Join(l.Dir, "none")}
	if complete, err := none.Newest(context.Background(), Search{Found: func(Record) bool { t.Error("found"); return true }}); !complete || err != nil {
		t.Errorf("without a log: %t, %v", complete, err)
	}
}

// TestLinesBack compares reading backwards with strings.Split.
func TestLinesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteString(strings.Repeat("x", random.IntN(readBack/8)))
			b.WriteString([]string{"\n", "\r\n", "", "\n\n"}[random.IntN(4)])
		}
		text := b.String()
		var want, got []string
		for _, line := range slices.Backward(strings.Split(text, "\n")) {
			if line = strings.TrimSpace(line); line != "" {
				want = append(want, line)
			}
		}
		left := int64(maxSearch)
		err := linesBack(context.Background(), strings.NewReader(text), int64(len(text)), &left, func(line []byte) error {
			got = append(got, string(line))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d lines of %d, %v", len(got), len(want), err)
		}
	}
	left := int64(readBack)
	if err := linesBack(context.Background(), strings.NewReader(strings.Repeat("x\n", readBack)), 2*readBack, &left, func([]byte) error { return nil }); err != nil || left != 0 {
		t.Errorf("beyond the bound: %d left, %v", left, err)
	}
}

// TestRecordFirst: a change that cannot be recorded is not made, and the record of one that
// cannot be made is taken back.
func TestRecordFirst(t *testing.T) {
	path := writeFile(t, "a.example\n")
	log := &Log{Dir: t.TempDir()}
	o := Options{Log: log, RecordFirst: true, Record: NewRecord("add", "blocked", path)}
	o.Record.Edits = []Edit{{ID: "one", Entry: "b.example", Words: "added b.example"}}
	whats := func() (all []string) {
		t.Helper()
		_, err := log.Newest(context.Background(), Search{Found: func(r Record) bool {
			all = append(all, r.Command+" "+r.What+" "+r.Undoes)
			return true
		}, Skipped: func(name string, what error) { t.Errorf("%s: %v", name, what) }})
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(all)
		return all
	}
	edit := func(during func()) error {
		_, err := Rewrite(context.Background(), path, func(_ io.ReadSeeker, w io.Writer) error {
			during()
			_, err := io.WriteString(w, "b.example\n")
			return err
		}, o)
		return err
	}
	if err := edit(func() {}); err != nil || readFile(t, path) != "b.example\n" || !slices.Equal(whats(), []string{"add added b.example "}) {
		t.Fatalf("%v, %q", err, whats())
	}
	// A directory in its place makes the renaming fail.
	dir := filepath.Dir(path)
	o.StateDir, o.Create = dir, true
	path = filepath.Join(dir, "new.txt")
	err := edit(func() {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	want := []string{"add added b.example ", "add added b.example ", "failed not made: added b.example one"}
	if err == nil || !slices.Equal(whats(), want) {
		t.Errorf("%v, %q", err, whats())
	}
}

// TestBeforeAndAfter: additions and removals tell the texts of the lines.
func TestBeforeAndAfter(t *testing.T) {
	const list = "spam.example # one\r\nother.example\n.Spam.example # two"
	_, additions := add(t, list, listfile.Options{}, listfile.Line{Text: "spam.example", Until: "2999-01-01"}, listfile.Line{Text: "new.example"}, listfile.Line{Text: "other.example"})
	for i, want := range []Addition{
		{Before: []string{"spam.example # one", ".Spam.example # two"}, After: "spam.example  # until=2999-01-01"},
		{After: "new.example"},
		{},
	} {
		if got := additions[i]; !slices.Equal(got.Before, want.Before) || got.After != want.After {
			t.Errorf("%d: %q > %q", i, got.Before, got.After)
		}
	}
	lines, err := Lines(strings.NewReader(list), listfile.Options{}, []listfile.Entry{additions[0].New})
	if want := []Line{{1, "spam.example # one"}, {3, ".Spam.example # two"}}; err != nil || !slices.Equal(lines[0], want) {
		t.Errorf("%v, %v", lines, err)
	}
	removals, err := Remove(strings.NewReader(list), io.Discard, listfile.Options{}, []listfile.Entry{additions[0].New})
	if err != nil || !slices.Equal(removals[0].Before, []string{"spam.example # one", ".Spam.example # two"}) {
		t.Errorf("%+v, %v", removals, err)
	}
}
