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

// Socket says where the socket is, and who may open it.
type Socket struct {
	Path  string      // absolute
	Mode  fs.FileMode // permission bits
	Group string      // name or number; empty: that of the process
}

// ErrInUse says that another gate answers on the socket.
var ErrInUse = errors.New("another gate answers there")

// socket is an open socket.
type socket struct {
	*net.UnixListener
	path string
	info fs.FileInfo // of this socket's file
}

// open makes the socket, and replaces one that is there. It makes the socket and sets
// its rights in a directory that nobody else can enter, and then moves it to its path.
// So at no time can others open it, and the path always leads to a socket.
func (s Socket) open() (_ *socket, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("admin socket %s: %w", s.Path, err)
		}
	}()
	if err := shortPath(s.Path, func(string) error { return nil }); err != nil {
		return nil, err // nobody could connect
	}
	gid, err := groupID(s.Group)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(s.Path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, errors.New("there is a file that is not a socket: remove it, or set another [admin] socket")
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

// makingPrefix begins the names of the directories in which sockets are made; the
// number of the process follows. The process holds the lock while it has one.
const makingPrefix = ".admin-"

var making sync.Mutex

// removeLeftovers removes the directories of processes that were killed. Errors do
// no harm.
func removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
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

// isRunning reports whether there is a process with that number.
func isRunning(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// place sets the rights of a socket, and moves it to its path.
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

// inPlace reports whether the path still leads to this socket.
func (s *socket) inPlace() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.info)
}

// Close removes the socket, if the path still leads to it, and closes it: while it is
// open no other file can have its inode number.
func (s *socket) Close() error {
	var err error
	if s.inPlace() {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.UnixListener.Close())
}

// groupID returns the number of a group, -1 for an empty name.
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
