package nexthop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMaildirNoSpace delivers into a full file system. It runs itself again in its own
// mount namespace to mount a small one.
func TestMaildirNoSpace(t *testing.T) {
	const variable = "SPAMGATE_TEST_SMALL_DISK"
	if dir := os.Getenv(variable); dir != "" {
		fillDisk(t, dir)
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^TestMaildirNoSpace$", "-test.v")
	command.Env = append(os.Environ(), variable+"="+t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("no namespaces here: %v", err)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("no tmpfs here:\n%s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fillDisk(t *testing.T, dir string) {
	// The root, the Maildir and its three directories, and two files.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k,nr_inodes=7"); err != nil {
		t.Skip(err)
	}
	const want = "452 4.3.1 Not enough space to store the message"
	mail := filepath.Join(dir, "mail")
	box, err := NewMaildir(mail, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, m, err := begin(box, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = m.Write([]byte("a line of a message that does not fit\r\n"))
	}
	var early *ReplyError
	if !errors.As(err, &early) || early.Reply.String() != want || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("no blocks: %v", err)
	}
	m.Abort()
	if left := leftFiles(t, mail); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if States(box)[0].Up {
		t.Error("it is up")
	}

	_, first, err := begin(box, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := begin(box, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := begin(box, "a@example.com"); err == nil || err.Error() != want {
		t.Errorf("no inodes: %v", err)
	}
	first.Abort()
	second.Abort()
	if left := leftFiles(t, mail); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if reply, err := deliver(box, "a@example.com", []byte("small\r\n"), whole); err != nil || !reply.Positive() {
		t.Errorf("with space again: %v, %v", reply, err)
	}
	if !States(box)[0].Up {
		t.Error("with space again it is not up")
	}
}
