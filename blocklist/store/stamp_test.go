package store

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadStamped(t *testing.T) {
	path := write(t, inDir(t, "list.txt"), "example.com\n")
	ctx := context.Background()
	var text []byte
	s, err := anyFile.readStamped(ctx, path, func(r io.Reader) (err error) {
		text, err = io.ReadAll(r)
		return err
	})
	if err != nil || string(text) != "example.com\n" || s.Size != 12 || s.Path != path {
		t.Fatalf("%+v, %q, %v", s, text, err)
	}
	again, err := anyFile.readStamped(ctx, path, nil)
	if err != nil || again.Digest != s.Digest || again.attributes != s.attributes {
		t.Errorf("unchanged, but not the same: %+v, %v", again, err)
	}
	write(t, path, "example.net\n")
	if other, err := anyFile.readStamped(ctx, path, nil); err != nil || other.Digest == s.Digest {
		t.Errorf("changed, but the same digest: %v", err)
	}
}

// tick waits until the file system's clock shows another time than that of a file's
// last change, so that the next change leaves a trace. Some file systems, and all
// before Linux 6.13, have one that goes on every 10 ms at worst (see clockTick).
func tick(t *testing.T, path string) {
	t.Helper()
	for {
		stamps, err := anyFile.statFiles([]string{path, write(t, path+".probe", "")})
		must(t, err)
		if stamps[0].Change != stamps[1].Change {
			return
		}
	}
}

// A file that changes under the reader.
func TestReadStampedChanged(t *testing.T) {
	changes := map[string]func(path string) error{
		"grown": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("example.net\n")
			return errors.Join(err, f.Close())
		},
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"replaced": func(path string) error {
			write(t, path+".new", "example.org\n")
			return os.Rename(path+".new", path) // one link less to what is read
		},
		"removed": os.Remove,
	}
	for name, change := range changes {
		if (name == "replaced" || name == "removed") && runtime.GOOS != "linux" {
			continue // without a change time there is no trace
		}
		path := write(t, inDir(t, "list.txt"), strings.Repeat("example.com\n", 1000))
		tick(t, path)
		_, err := anyFile.readStamped(context.Background(), path, func(r io.Reader) error {
			if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
				return err
			}
			return change(path)
		})
		if !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A version is made of the bytes that were stamped, or not at all.
func TestReadVersionOfOtherContent(t *testing.T) {
	path := write(t, inDir(t, "list.txt"), "example.com\n")
	stamps := []stamp{{}}
	var err error
	stamps[0], err = anyFile.readStamped(context.Background(), path, nil)
	must(t, err)
	stamps[0].Digest[0]++
	l := blockList("spam", path)
	if _, _, err := newSource(&l).build(context.Background(), stamps); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

func TestReadStampedErrors(t *testing.T) {
	path := write(t, inDir(t, "list.txt"), "example.com\n")
	fault := errors.New("fault")
	if _, err := anyFile.readStamped(context.Background(), path, func(io.Reader) error { return fault }); err != fault {
		t.Errorf("the user's error: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fault)
	if _, err := anyFile.readStamped(ctx, path, nil); err != fault {
		t.Errorf("an ended context: %v", err)
	}
	pipe := filepath.Join(filepath.Dir(path), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o644))
	if _, err := anyFile.readStamped(context.Background(), pipe, nil); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a pipe: %v", err) // and it returned
	}
}

func TestRacy(t *testing.T) {
	looked := time.Now()
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{
		{time.Hour, false},
		{3 * time.Second, false},
		{time.Second, true},
		{0, true},
		{-time.Hour, true}, // by a clock that is ahead
	} {
		s := stamp{Looked: looked}
		s.Change = looked.Add(-c.age).UnixNano()
		if s.racy() != c.want {
			t.Errorf("changed %v before: racy is %v", c.age, !c.want)
		}
	}
}

// A file that was rewritten without a trace in its attributes is noticed while
// they are racy, and touching it is not a change.
func TestRacyRewrite(t *testing.T) {
	path := write(t, inDir(t, "list.txt"), "example.com\n")
	l := blockList("spam", path)
	src := newSource(&l)
	scan := func() scanResult {
		r, again := src.scan(context.Background(), func(dir, name string) {}, nil, debounce{})
		if r.err != nil || !again.IsZero() {
			t.Fatal(r.err, again)
		}
		src.live = r
		return r
	}
	first := scan()
	if scan().good != first.good {
		t.Error("unchanged, but read again")
	}
	now := time.Now()
	must(t, os.Chtimes(path, now, now))
	if scan().good != first.good {
		t.Error("touched, and read again")
	}

	write(t, path, "example.net\n")
	stamps, err := anyFile.statFiles([]string{path})
	must(t, err)
	// As if all of it had happened in one tick of the clock.
	src.live.stamps[0].attributes = stamps[0].attributes
	second := scan()
	if second.good == first.good {
		t.Error("rewritten within a tick, and not noticed")
	}

	// Old attributes are trusted: the file is not even opened.
	src.live.stamps[0].Looked = time.Now().Add(time.Hour)
	src.live.stamps[0].Digest = [32]byte{}
	if scan().stamps[0].Digest != [32]byte{} {
		t.Error("attributes that are beyond doubt were doubted")
	}
}

// TestSameAttributes: a file that differs in anything that the file system says is looked into.
func TestSameAttributes(t *testing.T) {
	was := stamp{Path: "/list", attributes: attributes{Device: 1, Inode: 2, Size: 3, Modified: 4, Change: 5}}
	if !sameAttributes([]stamp{was}, []stamp{was}) {
		t.Error("the file differs from itself")
	}
	for name, change := range map[string]func(*attributes){
		"device": func(a *attributes) { a.Device++ }, "inode": func(a *attributes) { a.Inode++ }, "size": func(a *attributes) { a.Size++ },
		"mtime": func(a *attributes) { a.Modified++ }, "ctime": func(a *attributes) { a.Change++ },
	} {
		current := was
		change(&current.attributes)
		if sameAttributes([]stamp{was}, []stamp{current}) {
			t.Errorf("another %s is overlooked", name)
		}
	}
}
