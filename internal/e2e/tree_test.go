package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serversEnv names the environment variable with the folder that .ci/servers
// has filled.
const serversEnv = "SPAMGATE_E2E_SERVERS"

// fetched returns the path of something in the folder of serversEnv.
func fetched(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(serversEnv)
	if dir == "" {
		missing(t, "%s is not set: it names the folder that .ci/servers DIR fills, for %s", serversEnv, name)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		missing(t, "%v: .ci/servers DIR gets it", err)
	}
	return path
}

// vmail is the user, in the trees, who owns the mail.
const vmail = 61006

// tree is a mail server that sees nothing of the machine but its own root
// directory, a copy of a tree of .ci/servers. There it delivers into the Maildir
// /var/mail/you, and owns the network's address that it listens on.
type tree struct {
	t    testing.TB
	name string
	root string
	addr string // "127.64.0.1:4711"
	out  *lines // what it writes to standard output and standard error
}

// newTree makes the root directory of a server. It goes with the test.
func newTree(t testing.TB, name string) *tree {
	t.Helper()
	source := fetched(t, name)
	if os.Geteuid() != 0 {
		missing(t, "only root can change a server's root directory")
	}
	root, err := os.MkdirTemp("", "sg"+name) // short: there may be a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := copyTree(root, source); err != nil {
		t.Fatal(err)
	}
	s := &tree{t: t, name: name, root: root, addr: freeAddr(t), out: newLines(t, name)}
	s.devices()
	s.directory("var/mail", vmail)
	return s
}

// copyTree copies a tree with modes, set-user-ID bits included. Files are linked
// where that is possible, and so are not to be written to.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(from, path)
		target := filepath.Join(to, name)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			return os.Chmod(target, info.Mode())
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case os.Link(path, target) == nil:
			return nil
		}
		return copyEntry(target, path, info.Mode())
	})
}

func copyEntry(to, from string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chmod(to, mode)
}

// devices makes those that a server cannot do without.
func (s *tree) devices() {
	s.t.Helper()
	for name, minor := range map[string]int{"null": 3, "zero": 5, "random": 8, "urandom": 9} {
		path := filepath.Join(s.root, "dev", name)
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			s.t.Fatalf("%s: %v", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			s.t.Fatal(err)
		}
	}
}

// directory makes a directory in the tree for a user.
func (s *tree) directory(name string, owner int) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chown(path, owner, owner); err != nil {
		s.t.Fatal(err)
	}
}

// write makes a file, in place of one that may be shared with other trees.
func (s *tree) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	writeFile(s.t, path, text)
}

// start runs a program of the tree, which stays in the foreground, and waits
// until it answers. It ends with the test, with all that it has started.
func (s *tree) start(program string, args ...string) {
	s.t.Helper()
	s.startWhen(func() bool { return greets(s.addr) }, program, args...)
}

// startWhen is start with another way to tell that the program answers.
func (s *tree) startWhen(answers func() bool, program string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin", "HOME=/"}
	cmd.Stdout, cmd.Stderr = s.out, s.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: s.root, Setpgid: true}
	cmd.WaitDelay = lateLimit // for children that keep its output open
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	s.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		for _, pid := range s.processes() {
			if pid != cmd.Process.Pid {
				syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		select {
		case <-ended:
		case <-time.After(lateLimit):
			s.t.Errorf("%s did not end", s.name)
		}
		s.killRest()
		if s.t.Failed() {
			s.t.Logf("the last lines of %s's log:\n%s", s.name, tail(s.log()))
		}
	})
	pollFor(s.t, s.name+" to answer", func() bool {
		select {
		case <-ended:
			s.t.Fatalf("%s has ended", s.name)
		default:
		}
		return answers()
	})
}

// listens reports whether somebody can be connected to.
func listens(network, addr string) bool {
	c, err := net.Dial(network, addr)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// greets reports whether a server says 220.
func greets(addr string) bool {
	c, err := connect(addr)
	if err != nil {
		return false
	}
	defer c.Close()
	reply, err := c.reply()
	c.ask("QUIT") // politeness; nothing depends on it
	return err == nil && strings.HasPrefix(reply, "220")
}

// processes are those whose root directory is the tree, or within it.
func (s *tree) processes() []int {
	links, _ := filepath.Glob("/proc/[0-9]*/root")
	var pids []int
	for _, link := range links {
		root, err := os.Readlink(link)
		if err == nil && (root == s.root || strings.HasPrefix(root, s.root+"/")) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// killRest kills what the server has left running, deliveries for instance.
func (s *tree) killRest() {
	pollFor(s.t, s.name+"'s processes to end", func() bool {
		rest := s.processes()
		for _, pid := range rest {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(rest) == 0
	})
}

// logFile is where the servers log that do not write to standard error.
const logFile = "var/log/main"

// log is all that the server has logged.
func (s *tree) log() string {
	text, err := os.ReadFile(filepath.Join(s.root, logFile))
	if err != nil && !os.IsNotExist(err) {
		s.t.Error(err)
	}
	return s.out.String() + string(text)
}

// logLines are the lines of the log that hold all texts.
func (s *tree) logLines(texts ...string) []string {
	var found []string
	for line := range strings.Lines(s.log()) {
		if containsAll(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

// waitLog waits for the n-th line of the log that holds all texts.
func (s *tree) waitLog(n int, texts ...string) string {
	s.t.Helper()
	var found []string
	pollFor(s.t, fmt.Sprintf("line %d with %q in %s's log", n, texts, s.name), func() bool {
		found = s.logLines(texts...)
		return len(found) >= n
	})
	return found[n-1]
}

// mail waits for n messages in the Maildir of a user, "you", and returns all that
// are there, with lines that end in LF.
func (s *tree) mail(user string, n int) []string {
	s.t.Helper()
	var files []string
	pollFor(s.t, fmt.Sprintf("%d messages for %s", n, user), func() bool {
		files, _ = filepath.Glob(filepath.Join(s.root, "var/mail", user, "new", "*"))
		return len(files) >= n
	})
	var messages []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		messages = append(messages, string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
	}
	return messages
}

// pollFor asks until done, for what is told by no event.
func pollFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(lateLimit); !done(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %v for %s", lateLimit, what)
		}
	}
}
