package listedit

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
)

// A test that wants another process runs this test binary again: with adderFile
// set it adds entries to that file, named after adderName, until it is killed or
// has added adderCount.
const (
	adderFile  = "LISTEDIT_TEST_FILE"
	adderName  = "LISTEDIT_TEST_NAME"
	adderCount = "LISTEDIT_TEST_COUNT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(adderFile); path != "" {
		os.Exit(runAdder(path, os.Getenv(adderName), os.Getenv(adderCount)))
	}
	os.Exit(m.Run())
}

// runAdder prints the name of each entry once it is in the list.
func runAdder(path, name, count string) int {
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	for i := range n {
		entry := fmt.Sprintf("%s-%d.example", name, i)
		if err := addOne(path, entry); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(entry)
	}
	return 0
}

func addOne(path, entry string) error {
	_, err := Rewrite(context.Background(), path, func(old io.ReadSeeker, w io.Writer) error {
		_, err := Add(old, w, listfile.Options{}, []listfile.Line{{Text: entry, Reason: "test"}})
		return err
	}, Options{})
	return err
}

// writeFile makes a file in a new directory.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// entriesOf reads a list, all of whose lines have to be whole.
func entriesOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	entries := map[string]bool{}
	in := bufio.NewScanner(strings.NewReader(readFile(t, path)))
	for in.Scan() {
		if entry, ok := strings.CutSuffix(in.Text(), "  # test"); ok {
			entries[entry] = true
		} else if !strings.HasPrefix(in.Text(), "# ") {
			t.Errorf("a broken line: %q", in.Text())
		}
	}
	return entries
}

// others are the names beside the file.
func others(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			names = append(names, e.Name())
		}
	}
	return names
}

// editText is Rewrite for files that are held in memory.
func editText(ctx context.Context, path string, edit func(old []byte) ([]byte, error), o Options) (Change, error) {
	return Rewrite(ctx, path, func(old io.ReadSeeker, w io.Writer) error {
		before, err := io.ReadAll(old)
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil {
			return err
		}
		if bytes.Equal(before, after) {
			return ErrUnchanged
		}
		_, err = w.Write(after)
		return err
	}, o)
}

// writeText replaces the content of the file at path, which has to exist.
func writeText(ctx context.Context, path string, content []byte, o Options) (Change, error) {
	return editText(ctx, path, func([]byte) ([]byte, error) { return content, nil }, o)
}
