package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// What is not there yet, or no longer, says how it comes.
func TestMissing(t *testing.T) {
	path := inDir(t, "the list.txt")
	for name, c := range map[string]struct {
		url     string
		history int
		before  string // what the file held, before it went
		err     error
		says    string
	}{
		"never fetched":     {"https://lists.example/spam", 5, "", ErrNotFetched, `list "a list" has no usable version: not fetched yet: fetch a list (`},
		"fetched, and gone": {"https://lists.example/spam", 5, "example.com\n", fs.ErrNotExist, "no such file or directory; fetch again a list"},
		"never there":       {"", 5, "", fs.ErrNotExist, "no such file or directory ("},
		"gone":              {"", 5, "example.com\n", fs.ErrNotExist, "no such file or directory; restore a list"},
		"gone, none kept":   {"", 0, "example.com\n", fs.ErrNotExist, "no such file or directory"},
	} {
		l := blockList("a list", path)
		l.URL = c.url
		conf := stateful(t, l)
		conf.History = c.history
		var err error
		if c.before == "" {
			_, _, err = Build(context.Background(), conf)
		} else {
			write(t, path, c.before)
			s := openStill(t, conf)
			s.running.Wait()
			must(t, os.Remove(path))
			_, err = rescan(t, s)
			if l := s.Set().Stats().Lists[0]; !l.LastGood || l.Entries != 1 {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if err == nil || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || c.history == 0 && strings.Contains(err.Error(), "restore") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
