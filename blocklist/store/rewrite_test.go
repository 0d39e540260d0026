package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
)

// rewriting is a list of which every version holds the same senders, each with
// the version's number as its reason: a mixture of two versions shows.
//
// It fits into one page of 4 KiB. Of more than that the kernel shows the pages
// that are written already, and a writer that does not get the processor between
// two of them for longer than the debounce time has left the file alone: half of
// it is served then, as it should be.
const rewrittenEntries = 100

func versionText(n int) string {
	var b strings.Builder
	for i := range rewrittenEntries {
		fmt.Fprintf(&b, "host%d.example # version %06d\n", i, n)
	}
	return b.String()
}

// versionOf looks every entry up in one Set and says which version it is of.
func versionIn(t *testing.T, set *blocklist.Set) string {
	t.Helper()
	version := ""
	for i := range rewrittenEntries {
		reason := lookup(t, set, verdict.Envelope, parse(t, fmt.Sprintf("u@host%d.example", i))).Match.Reason
		if i == 0 {
			version = reason
		}
		if reason != version || reason == "" {
			t.Errorf("generation %d: entry %d is of %q, others of %q", set.Generation(), i, reason, version)
			break
		}
	}
	return version
}

// The ways in which editors and tools replace a file. Path is the list's path,
// which make has set up with text; a rewrite puts another text there.
var rewrites = []struct {
	name    string
	make    func(t *testing.T, path, text string)
	rewrite func(t *testing.T, path, text string)
}{
	{"in place", plainFile, func(t *testing.T, path, text string) { write(t, path, text) }},
	{"in place without truncating", plainFile, func(t *testing.T, path, text string) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString(text) // as long as before
		must(t, err)
		must(t, f.Close())
	}},
	{"rename", plainFile, func(t *testing.T, path, text string) {
		must(t, os.Rename(write(t, path+"~", text), path))
	}},
	{"symlink swap", linkedFile, func(t *testing.T, path, text string) {
		old, err := os.Readlink(path)
		must(t, err)
		linkedFile(t, path, text)
		must(t, os.Remove(filepath.Join(filepath.Dir(path), old)))
	}},
	{"directory symlink swap", linkedDir, func(t *testing.T, path, text string) {
		old, err := os.Readlink(filepath.Dir(path))
		must(t, err)
		linkedDir(t, path, text)
		must(t, os.RemoveAll(filepath.Join(filepath.Dir(filepath.Dir(path)), old)))
	}},
	{"delete and recreate", plainFile, func(t *testing.T, path, text string) {
		must(t, os.Remove(path))
		write(t, path, text)
	}},
	{"backup and recreate", plainFile, func(t *testing.T, path, text string) {
		must(t, os.Rename(path, path+"~"))
		write(t, path, text)
	}},
	{"directory recreated", plainFile, func(t *testing.T, path, text string) {
		must(t, os.RemoveAll(filepath.Dir(path)))
		must(t, os.Mkdir(filepath.Dir(path), 0o755))
		write(t, path, text)
	}},
	{"directory swapped", plainFile, func(t *testing.T, path, text string) {
		dir := filepath.Dir(path)
		must(t, os.Mkdir(dir+".new", 0o755))
		write(t, filepath.Join(dir+".new", filepath.Base(path)), text)
		must(t, os.Rename(dir, dir+".old"))
		must(t, os.Rename(dir+".new", dir))
		must(t, os.RemoveAll(dir+".old"))
	}},
}

func plainFile(t *testing.T, path, text string) { write(t, path, text) }

var targets atomic.Int64

// linkedFile makes path a link to a new file, as one step.
func linkedFile(t *testing.T, path, text string) {
	target := fmt.Sprintf("target%d", targets.Add(1))
	write(t, filepath.Join(filepath.Dir(path), target), text)
	must(t, os.Symlink(target, path+"~"))
	must(t, os.Rename(path+"~", path))
}

// linkedDir makes the path's directory a link to a new one, as one step.
func linkedDir(t *testing.T, path, text string) {
	dir := filepath.Dir(path)
	target := fmt.Sprintf("target%d", targets.Add(1))
	must(t, os.Mkdir(filepath.Join(filepath.Dir(dir), target), 0o755))
	write(t, filepath.Join(filepath.Dir(dir), target, filepath.Base(path)), text)
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		must(t, os.Remove(dir)) // the first time
	}
	must(t, os.Symlink(target, dir+"~"))
	must(t, os.Rename(dir+"~", dir))
}

// A list is rewritten over 200 times (a third of that with -short) under lookups,
// in every way: a Set is of one version, whole, and the new version comes each
// time, by events alone.
func TestRewrites(t *testing.T) {
	for _, way := range rewrites {
		t.Run(way.name, func(t *testing.T) {
			path := filepath.Join(inDir(t, "lists"), "spam.txt")
			must(t, os.Mkdir(filepath.Dir(path), 0o755))
			way.make(t, path, versionText(0))
			c := fast(blockList("spam", path))
			c.Debounce = 5 * time.Millisecond
			s := openStore(t, c)

			stop := make(chan struct{})
			var readers sync.WaitGroup
			var seen atomic.Uint64
			readers.Go(func() {
				for last := ""; ; {
					select {
					case <-stop:
						return
					default:
					}
					version := versionIn(t, s.Set())
					if version < last {
						t.Errorf("%s after %s", version, last)
					}
					last = version
					seen.Add(1)
				}
			})
			for n := 1; n <= unlessShort(25, 8); n++ {
				text := versionText(n)
				way.rewrite(t, path, text)
				awaitVersion(t, s, fmt.Sprintf("version %06d", n))
			}
			close(stop)
			readers.Wait()
			if l := s.Set().Stats().Lists[0]; l.Err != nil {
				t.Error(l.Err)
			}
			t.Logf("%d Sets checked, %d generations", seen.Load(), s.Set().Generation())
		})
	}
}

// awaitVersion waits until a version is live.
func awaitVersion(t *testing.T, s *Store, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	for set := s.Set(); ; {
		if versionIn(t, set) == want {
			return
		}
		var err error
		if set, err = s.Await(ctx, set.Generation()+1); err != nil {
			t.Fatalf("%s is not live: %v", want, err)
		}
	}
}
