package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Socket says where a socket is to be, and who may open it.
type Socket struct {
	Path  string      // absolute
	Mode  fs.FileMode // the permission bits
	Group string      // name or number; empty: the process's
}

// ErrInUse says that another gate answers on the socket.
var ErrInUse = errors.New("another gate answers there")

// socket is one that is open.
type socket struct {
	*net.UnixListener
	path string
	info fs.FileInfo // of the file that is this socket
}

// open makes the socket, in place of one that is there already. It is made in a
// directory that nobody else can enter, is given its rights there, and then moved
// to its path: so at no time can anybody open it who may not, and at no time is
// there none where there was one.
func (s Socket) open() (_ *socket, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("admin socket %s: %w", s.Path, err)
		}
	}()
	if err := shortPath(s.Path, func(string) error { return nil }); err != nil {
		return nil, err // nobody could connect to it
	}
	gid, err := groupID(s.Group)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(s.Path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, errors.New("there is a file that is no socket: remove it, or set another [admin] socket")
	}
	making.Lock()
	defer making.Unlock()
	removeLeftovers(filepath.Dir(s.Path))
	dir, err := os.MkdirTemp(filepath.Dir(s.Path), fmt.Sprintf("%s%d-*", makingPrefix, os.Getpid())) // mode 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // on success it is empty
	made := filepath.Join(dir, "s")
	l, err := listenUnix(made)
	if err != nil {
		return nil, err
	}
	open := &socket{UnixListener: l, path: s.Path}
	if open.info, err = s.place(made, gid); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return open, nil
}

// makingPrefix is how the directories begin in which sockets are made, before the
// number of the process. The lock is held while this process has one.
const makingPrefix = ".admin-"

var making sync.Mutex

// removeLeftovers removes those of processes that were killed meanwhile. That
// they cannot be removed hurts nobody.
func removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir) // what can be read of it
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), makingPrefix)
		if !ok || !e.IsDir() {
			continue
		}
		number, _, _ := strings.Cut(rest, "-")
		if pid, err := strconv.Atoi(number); err == nil && (pid == os.Getpid() || !isRunning(pid)) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// isRunning reports whether there is a process of that number, ours or not.
func isRunning(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// place gives a socket its rights and moves it to its path.
func (s Socket) place(made string, gid int) (fs.FileInfo, error) {
	if gid >= 0 {
		if err := os.Lchown(made, -1, gid); err != nil {
			return nil, fmt.Errorf("giving it to the group %s: %w (the gate's user must be in that group)", s.Group, err)
		}
	}
	if err := os.Chmod(made, s.Mode.Perm()); err != nil {
		return nil, err
	}
	info, err := os.Lstat(made)
	if err != nil {
		return nil, err
	}
	return info, os.Rename(made, s.Path)
}

// inPlace reports whether the path still leads to this socket, and not to that
// of a gate that has taken over.
func (s *socket) inPlace() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.info)
}

// Close closes the socket, and removes it where it is still its own. It is
// removed first: as long as it is open no other file can have its number.
func (s *socket) Close() error {
	var err error
	if s.inPlace() {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.UnixListener.Close())
}

// groupID is a group's number, -1 where none is named.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("[admin] socket_group: %w", err)
	}
	return strconv.Atoi(g.Gid)
}
