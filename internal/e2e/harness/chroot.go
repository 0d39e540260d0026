package harness

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// VmailUID is the user who owns the mail in a chroot.
const VmailUID = 61006

// A ChrootServer is a mail server in a chroot of its own, which is a copy of a tree that
// .ci/servers has fetched. It delivers into the Maildir /var/mail/you, and listens on an
// address that no other server has.
type ChrootServer struct {
	t    testing.TB
	Name string
	Root string
	Addr string  // "127.64.0.1:4711"
	out  *Output // standard output and standard error
}

// newChrootServer makes the root directory of a server, and removes it at the end of the
// test.
func newChrootServer(t testing.TB, name string) *ChrootServer {
	t.Helper()
	source := FetchedFile(t, name)
	if os.Geteuid() != 0 {
		SkipMissing(t, "only root can change a server's root directory")
	}
	root, err := os.MkdirTemp("", "sg"+name) // short, since it may hold a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := copyTree(root, source); err != nil {
		t.Fatal(err)
	}
	s := &ChrootServer{t: t, Name: name, Root: root, Addr: FreeAddr(t), out: NewOutput(t, name)}
	s.devices()
	s.directory("var/mail", VmailUID)
	return s
}

// copyTree copies a directory tree with its modes, set-user-ID bits included. It links
// files if it can, so nobody may write to the copies.
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

// copyEntry copies a file with its mode.
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

// devices makes the device files that a server needs.
func (s *ChrootServer) devices() {
	s.t.Helper()
	for name, minor := range map[string]string{"null": "3", "zero": "5", "random": "8", "urandom": "9"} {
		path := filepath.Join(s.Root, "dev", name)
		if out, err := exec.Command("mknod", "--mode=666", path, "c", "1", minor).CombinedOutput(); err != nil {
			s.t.Fatalf("mknod: %v\n%s", err, out)
		}
	}
}

// directory makes a directory in the tree and gives it to a user.
func (s *ChrootServer) directory(name string, owner int) {
	s.t.Helper()
	path := filepath.Join(s.Root, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chown(path, owner, owner); err != nil {
		s.t.Fatal(err)
	}
}

// Write replaces a file of the tree. It does not write into the old one, which other
// trees may share.
func (s *ChrootServer) Write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.Root, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	WriteFile(s.t, path, text)
}

// start runs a program of the tree in the foreground and waits until it greets. At the
// end of the test it ends the program with all its children.
func (s *ChrootServer) start(program string, args ...string) {
	s.t.Helper()
	s.startWhen(func() bool { return Greets(s.Addr) }, program, args...)
}

// startWhen is [ChrootServer.start] with another way to find out that the program
// serves.
func (s *ChrootServer) startWhen(answers func() bool, program string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin", "HOME=/"}
	cmd.Stdout, cmd.Stderr = s.out, s.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: s.Root, Setpgid: true}
	cmd.WaitDelay = WorkTimeout // children may keep its output open
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("%s: %v", s.Name, err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	s.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		for _, pid := range s.Processes() {
			if pid != cmd.Process.Pid {
				syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		select {
		case <-ended:
		case <-time.After(WorkTimeout):
			s.t.Errorf("%s did not end", s.Name)
		}
		s.killRest()
		if s.t.Failed() {
			s.t.Logf("the last lines of %s's log:\n%s", s.Name, tail(s.log()))
		}
	})
	WaitFor(s.t, s.Name+" to answer", func() bool {
		select {
		case <-ended:
			s.t.Fatalf("%s has ended", s.Name)
		default:
		}
		return answers()
	})
}

// Run runs a program of the tree to its end and returns its standard output.
func (s *ChrootServer) Run(program string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin", "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: s.Root}
	out, errs, code := Run(s.t, cmd)
	if code != 0 {
		s.t.Fatalf("%s: exit code %d\n%s", program, code, errs)
	}
	return out
}

// Processes returns the processes whose root directory is the tree or a directory in it.
func (s *ChrootServer) Processes() []int {
	links, _ := filepath.Glob("/proc/[0-9]*/root")
	var pids []int
	for _, link := range links {
		root, err := os.Readlink(link)
		if err == nil && (root == s.Root || strings.HasPrefix(root, s.Root+"/")) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// killRest kills the processes that the server has left running, such as deliveries.
func (s *ChrootServer) killRest() {
	WaitFor(s.t, s.Name+"'s processes to end", func() bool {
		rest := s.Processes()
		for _, pid := range rest {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(rest) == 0
	})
}

// logFile is the log of the servers that do not log to standard error.
const logFile = "var/log/main"

// log returns all that the server has logged.
func (s *ChrootServer) log() string {
	text, err := os.ReadFile(filepath.Join(s.Root, logFile))
	if err != nil && !os.IsNotExist(err) {
		s.t.Error(err)
	}
	return s.out.String() + string(text)
}

// LogLines returns the lines of the log that hold all texts.
func (s *ChrootServer) LogLines(texts ...string) []string {
	var found []string
	for line := range strings.Lines(s.log()) {
		if containsAll(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

// WaitLog waits for the n-th line of the log that holds all texts, and returns it.
func (s *ChrootServer) WaitLog(n int, texts ...string) string {
	s.t.Helper()
	var found []string
	WaitFor(s.t, fmt.Sprintf("line %d with %q in %s's log", n, texts, s.Name), func() bool {
		found = s.LogLines(texts...)
		return len(found) >= n
	})
	return found[n-1]
}

// Mail waits for n messages in the Maildir of a user and returns all messages that are
// there, with lines that end in LF.
func (s *ChrootServer) Mail(user string, n int) []string {
	s.t.Helper()
	var files []string
	WaitFor(s.t, fmt.Sprintf("%d messages for %s", n, user), func() bool {
		files, _ = filepath.Glob(filepath.Join(s.Root, "var/mail", user, "new", "*"))
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
