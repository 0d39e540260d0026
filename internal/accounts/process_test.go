package accounts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test program a process that uses a Store: "WHAT DIR".
const childVariable = "SPAMGATE_TEST_ACCOUNTS"

func TestMain(m *testing.M) {
	if what, dir := os.Getenv(childVariable), os.Getenv(childVariable+"_DIR"); what != "" {
		if err := child(what, dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child adds users of a prefix, and says so after each; or it tries to work on a full disk.
func child(what, dir string) error {
	s := Open(dir)
	if what == "full" {
		return onFullDisk(s)
	}
	for i := range 1000 {
		if err := s.AddUser(what+strconv.Itoa(i), "", Viewer, nil); err != nil {
			return err
		}
		fmt.Println(i)
		time.Sleep(10 * time.Millisecond) // else it has the lock nearly always
	}
	return nil
}

// onFullDisk expects that nobody logs in, that the present session goes on and that no account
// is added.
func onFullDisk(s *Store) error {
	cookie := os.Getenv(childVariable + "_COOKIE")
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
		return err
	}
	if _, err := s.Login(context.Background(), "ann", password, Origin{Address: ""}); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("login: %w", err)
	}
	if err := s.AddUser("bob", "", Viewer, nil); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("add: %w", err)
	}
	_, _, err := s.Session(cookie)
	return err
}

// process is a child that adds users.
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
	added int // users whose addition has returned
}

func start(t *testing.T, what, dir string, more ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childVariable+"="+what, childVariable+"_DIR="+dir), more...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return &process{Cmd: cmd, lines: bufio.NewScanner(out)}
}

// wait waits until the child has added n users.
func (p *process) wait(t *testing.T, n int) {
	t.Helper()
	for p.added < n {
		if !p.lines.Scan() {
			t.Fatalf("the child ended: %s", p.lines.Text())
		}
		p.added++
	}
}

// kill kills the child, and counts what it had done.
func (p *process) kill() {
	_ = p.Process.Kill()
	for p.lines.Scan() {
		p.added++
	}
	_ = p.Wait()
}

// TestKilled kills processes that add users at the same time as this one. Each user whose
// addition has returned is there, and at most one more of each process.
func TestKilled(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("SPAMGATE_ACCOUNTS_KILLS")); err == nil {
		rounds = n
	}
	for range rounds {
		s, _, _ := stores(t)
		const own = 5
		process, other := start(t, "a", s.tree.Dir()), start(t, "b", s.tree.Dir())
		for i := range own {
			must(t, s.AddUser("c"+strconv.Itoa(i), "", Viewer, nil))
		}
		process.wait(t, 5)
		process.kill()
		other.wait(t, 10)
		other.kill()
		all, err := s.List()
		must(t, err)
		got := map[string]int{}
		for _, a := range all {
			got[a.Name[:1]]++
		}
		for prefix, n := range map[string]int{"a": process.added, "b": other.added} {
			if got[prefix] < n || got[prefix] > n+1 {
				t.Errorf("%d users of %s, which had added %d", got[prefix], prefix, n)
			}
		}
		if got["c"] != own {
			t.Errorf("%d users of this process, want %d", got["c"], own)
		}
	}
}

func TestFullDisk(t *testing.T) {
	s := Open(t.TempDir())
	must(t, s.AddUser("ann", password, Editor, nil))
	cookie := login(t, s, "ann")
	p := start(t, "full", s.tree.Dir(), childVariable+"_COOKIE="+cookie)
	p.lines.Scan()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.lines.Text())
	}
	if n, err := s.Check(); n != 1 || err != nil {
		t.Errorf("%d accounts, %v", n, err)
	}
}
