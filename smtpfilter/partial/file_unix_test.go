//go:build unix

package partial

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// settlerPath makes this test binary a process that settles in a Store, and prints
// each recipient once that is done.
const settlerPath = "PARTIAL_TEST_SETTLE"

func TestMain(m *testing.M) {
	path := os.Getenv(settlerPath)
	if path == "" {
		os.Exit(m.Run())
	}
	s := Open(path, Options{lockWait: time.Minute})
	for i := 0; ; i++ {
		to := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if err := trySettle(s, sumOf(1), to+" delivered"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(to)
	}
}

// TestKill kills a process while another goes on. What it has settled must be known.
func TestKill(t *testing.T) {
	path := storePath(t)
	beside := open(t, path, Options{lockWait: time.Minute})
	var settled []string
	for i := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), settlerPath+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		in := bufio.NewScanner(out)
		for n := 0; in.Scan(); n++ {
			settled = append(settled, in.Text())
			if n == 5+i {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		to := fmt.Sprintf("beside-%d", i)
		settle(t, beside, sumOf(1), to+" delivered")
		settled = append(settled, to)
	}
	for _, s := range []*Store{beside, open(t, path, Options{})} {
		for _, to := range settled {
			want(t, s, to, has(sumOf(1)))
		}
	}
	t.Logf("%d settled by 10 processes that were killed", len(settled))
}

// TestHostilePaths wants other than regular files not to be opened, and links not to be
// followed: the Store logs that and works in memory. Nobody else may read the file.
func TestHostilePaths(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"symbolic link": func(path string) error { return os.Symlink("victim", path) },
		"dangling link": func(path string) error { return os.Symlink("none", path) },
		"FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"missing directory": func(path string) error {
			return os.Remove(filepath.Dir(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			victim := filepath.Join(dir, "victim")
			path := filepath.Join(dir, "lmtp.partial")
			if name == "missing directory" {
				path = filepath.Join(dir, "sub", "lmtp.partial")
				os.Mkdir(filepath.Dir(path), 0o700)
			} else if err := os.WriteFile(victim, []byte("mine\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := place(path); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s := open(t, path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if name != "missing directory" && !strings.Contains(log.String(), "is not a regular file; remove it") {
				t.Errorf("the log says %q", log.String())
			}
			if err := trySettle(s, sumOf(1), "b delivered"); err == nil {
				t.Error("it was settled on disk")
			}
			want(t, s, "b", has(sumOf(1)))
			if name == "missing directory" {
				return
			}
			if text := readFile(t, victim); text != "mine\n" {
				t.Errorf("the link was followed: %q", text)
			}
			if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
				t.Error("the dangling link was followed")
			}

			// Once it is gone, what is in memory goes to the disk with the rest.
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			settle(t, s, sumOf(2), "c delivered")
			later := open(t, path, Options{})
			want(t, later, "b", has(sumOf(1)))
			want(t, later, "c", has(sumOf(2)))
		})
	}
}

// TestMode wants the permissions of others to be removed from a file.
func TestMode(t *testing.T) {
	path := storePath(t)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, Options{})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	settle(t, s, sumOf(1), "b delivered")
	want(t, open(t, path, Options{}), "b", has(sumOf(1)))
}

// TestFullDisk wants whole lines in the file and all entries in memory while the disk is
// full, and all entries in the file afterwards.
func TestFullDisk(t *testing.T) {
	path := storePath(t)
	s := open(t, path, Options{})
	settle(t, s, sumOf(1), "b delivered")
	before := readFile(t, path)

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	full := limit
	setLimit(&full.Cur, len(before)+40) // in the middle of a line
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	err := trySettle(s, sumOf(2), "b delivered", "c refused x")
	if errLimit := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); errLimit != nil {
		t.Fatal(errLimit)
	}
	if err == nil {
		t.Error("a full disk was not noticed")
	}
	if text := readFile(t, path); text != before {
		t.Errorf("a part of a line is left: %q", text[len(before):])
	}
	want(t, s, "b", has(sumOf(1)), has(sumOf(2)))
	want(t, open(t, path, Options{}), "b", has(sumOf(1)))

	settle(t, s, sumOf(2), "b delivered")
	settle(t, s, sumOf(3), "d pending")
	later := open(t, path, Options{})
	want(t, later, "b", has(sumOf(1)), has(sumOf(2)))
	want(t, later, "c", refused(sumOf(2)))
}

// TestLocked has another process lock the file for long, as if it was stopped. The entry
// is then not on disk, and nobody waits long for an answer.
func TestLocked(t *testing.T) {
	path := storePath(t)
	s := open(t, path, Options{lockWait: 10 * time.Millisecond})
	settle(t, s, sumOf(1), "b delivered")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tryLock(f); err != nil {
		t.Fatal(err)
	}
	if err := trySettle(s, sumOf(2), "b delivered"); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("settled while it was locked: %v", err)
	}
	want(t, s, "b", has(sumOf(1)), has(sumOf(2)))
	unlockFile(f)
	settle(t, s, sumOf(3), "c delivered")
	want(t, open(t, path, Options{}), "c", has(sumOf(3)))
}

// setLimit sets a limit, which is unsigned on Linux and signed on FreeBSD.
func setLimit[T int64 | uint64](limit *T, n int) { *limit = T(n) }
