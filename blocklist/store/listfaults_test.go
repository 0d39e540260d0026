package store

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// What can befall a list of 2,000 entries. Most is held; of what is a list all the
// same the lines that would do harm are left out.
var listFaults = []struct {
	name string
	make func(t *testing.T, path string) // puts it where the list was
	err  error                           // nil: the rest of the list goes live
	says string
}{
	{"empty", replaceBy(""), ErrEmptied, "0 bytes"},
	{"cut", replaceBy(faultyList[:len(faultyList)/2]), ErrShrunk, "from 2000 entries to"},
	{"-60%", replaceBy(manyLines(800, 0)), ErrShrunk, "from 2000 entries to 800"},
	{"UTF-16", replaceBy("\xff\xfe" + strings.ReplaceAll(faultyList, "", "\x00")), listfile.ErrUTF16, "UTF-8"},
	{"byte order mark alone", replaceBy("\xef\xbb\xbf"), ErrShrunk, "from 2000 entries to 0"},
	{"NUL", replaceBy(faultyList + "host\x00.example\n"), listfile.ErrBinary, "line 2001"},
	{"com", replaceBy(faultyList + "com\n"), nil, "covers every domain below it"},
	{"protected name", replaceBy(faultyList + "protected.example\n"), nil, "covers all of protected.example"},
	{"10 GB sparse", func(t *testing.T, path string) {
		write(t, path, faultyList)
		must(t, os.Truncate(path, 10<<30))
	}, ErrTooBig, "max_bytes"},
	{"sparse, and large files are allowed", func(t *testing.T, path string) {
		write(t, path, faultyList)
		must(t, os.Truncate(path, faultyMaxBytes))
	}, listfile.ErrBinary, "line 2001"},
	{"one long line", longLine, ErrInvalidLines, ":1: "},
	{"symbolic link swapped", func(t *testing.T, path string) {
		must(t, os.Symlink("somewhere", path+".new"))
		must(t, os.Rename(path+".new", path))
	}, fs.ErrNotExist, "no such file"},
	{"symbolic link to something else", func(t *testing.T, path string) {
		must(t, os.Symlink(write(t, path+".other", strings.Repeat("root:x:0:0:root:/root:/bin/sh\n", 30)), path+".new"))
		must(t, os.Rename(path+".new", path))
	}, ErrInvalidLines, "30 of 30"},
	{"symbolic link to itself", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Symlink(filepath.Base(path), path))
	}, syscall.ELOOP, "symbolic links"},
	{"pipe", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, syscall.Mkfifo(path, 0o644))
	}, ErrNotRegular, "named pipe"},
	{"directory", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o755))
	}, ErrNotRegular, "directory"},
	{"mode 000", func(t *testing.T, path string) { must(t, os.Chmod(path, 0)) }, fs.ErrPermission, "permission denied"},
	{"binary", func(t *testing.T, path string) {
		r := rand.NewChaCha8([32]byte{1})
		bytes := make([]byte, 1<<20)
		r.Read(bytes)
		write(t, path, "\x7fELF"+string(bytes))
	}, listfile.ErrBinary, "NUL"},
}

var faultyList = manyLines(2000, 0)

// faultyMaxBytes is the largest file where that is not the default.
const faultyMaxBytes = 9 << 30

func replaceBy(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { write(t, path, text) }
}

// longLine writes a line of 1 GB, or of 16 MB where not everything is to be
// tested.
func longLine(t *testing.T, path string) {
	size := 16 << 20
	if os.Getenv("SPAMGATE_E2E_FULL") == "1" {
		size = 1 << 30
	}
	f, err := os.Create(path)
	must(t, err)
	part := strings.Repeat("example.com ", 1<<20/12)
	for n := 0; n < size && err == nil; n += len(part) {
		_, err = f.WriteString(part)
	}
	must(t, errors.Join(err, f.Close()))
}

// A list is held while a Store runs, and so it is at the next start, and once it
// is mended it serves.
func TestListFaults(t *testing.T) {
	for _, fault := range listFaults {
		t.Run(fault.name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), faultyList)
			c := stateful(t, blockList("spam", path))
			c.Filter.Kind = blocklist.KindSized // small
			c.Protect = []string{"protected.example"}
			if errors.Is(fault.err, listfile.ErrBinary) {
				c.Lists[0].MaxBytes = faultyMaxBytes
			}
			var log logBuffer
			c.Logger = log.logger()
			s := openStill(t, c)
			fault.make(t, path)
			set, err := rescanAsStranger(t, s)
			wantFault := func(log *logBuffer) {
				t.Helper()
				l := set.Stats().Lists[0]
				if !errors.Is(err, fault.err) || (err == nil) != (fault.err == nil) || l.LastGood != (fault.err != nil) || l.Entries != 2000 {
					t.Errorf("%v, want %v; %+v", err, fault.err, l)
				}
				for _, host := range []string{"host0", "host1999"} {
					if listed(t, set, "u@"+host+".example") != verdict.Reject {
						t.Errorf("%s is no longer listed", host)
					}
				}
				for _, stranger := range []string{"u@protected.example", "u@example.com", "u@host2000.example"} {
					if listed(t, set, stranger) != verdict.Accept {
						t.Errorf("%s is listed", stranger)
					}
				}
				if lines := log.lines("spam.txt"); len(lines) == 0 || !strings.Contains(lines[0], "level=WARN") {
					t.Errorf("log: %q", lines)
				} else if text := strings.Join(lines, ""); fault.err != ErrEmptied && !strings.Contains(text, fault.says) {
					t.Errorf("want %q in the log: %s", fault.says, text)
				}
			}
			wantFault(&log)

			must(t, s.Close())
			var again logBuffer
			c.Logger = again.logger()
			asStranger2(t, c.StateDir, func() { s = openStill(t, c) })
			set, err = rescanAsStranger(t, s)
			wantFault(&again)

			must(t, os.RemoveAll(path))
			write(t, path, faultyList+"mended.example\n")
			if set, err := rescan(t, s); err != nil || set.Stats().Lists[0].LastGood || listed(t, set, "u@mended.example") != verdict.Reject {
				t.Errorf("mended, and %v, %+v", err, set.Stats().Lists[0])
			}
		})
	}
}

// A list that is written slowly, in place, or that was removed and comes back,
// serves as it was until that is over. With those above these are 18.
func TestListFaultsInTime(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, path string){
		"slow write": func(t *testing.T, path string) { write(t, path, faultyList[:5000]) },
		"recreated":  func(t *testing.T, path string) { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), faultyList)
			c := stateful(t, blockList("spam", path))
			c.Debounce, c.MaxDebounce = time.Hour, 2*time.Hour
			s := openStill(t, c)
			before := s.Set()
			begin(t, path)
			for n := range 3 {
				if again, err := s.look(context.Background()); err != nil || again.IsZero() || s.Set() != before {
					t.Errorf("live already: again %v, %v", again, err)
				}
				write(t, path, faultyList[:5000+5000*n])
			}
			write(t, path, faultyList+"example.com\n")
			s.config.Debounce = time.Millisecond // it has been left alone for long enough
			s.config.MaxDebounce = time.Second
			set, err := rescan(t, s)
			if err != nil || set.Stats().Entries != 2001 || listed(t, set, "u@example.com") != verdict.Reject {
				t.Errorf("%d entries, %v", set.Stats().Entries, err)
			}
		})
	}
}

// What could not be read to its end is not read to its end to see whether it is the
// same: it may be large, and other lists wait.
func TestFaultIsNotReadAgain(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	l := blockList("spam", path)
	src := newSource(&l)
	must(t, os.Truncate(path, 64<<20))
	reads := 0
	ctx := meddler{context.Background(), func() { reads++ }}
	for range 3 {
		src.live, _ = src.scan(ctx, func(dir, name string) {}, nil, debounce{})
		if !errors.Is(src.live.err, listfile.ErrBinary) {
			t.Fatal(src.live.err)
		}
	}
	if reads > 1000 {
		t.Errorf("%d reads", reads)
	}
}
