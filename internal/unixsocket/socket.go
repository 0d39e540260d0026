// Package unixsocket makes Unix sockets with the rights that they are to have, and connects to
// sockets whose path others may change.
package unixsocket

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
	"sync/atomic"
	"syscall"
)

// Socket says where a socket is, and who may open it.
type Socket struct {
	Path  string      // absolute
	Mode  fs.FileMode // permission bits
	Group string      // name or number; empty: that of the process
}

// Listener is an open socket.
type Listener struct {
	*net.UnixListener
	path   string
	info   fs.FileInfo // of this socket's file
	shared atomic.Bool // the file belongs to another process
}

// Listen makes the socket, and replaces one that is there: see CheckFree. It makes the socket
// and sets its rights in a directory that nobody else can enter, and then moves it to its path.
// So at no time can others open it, and the path always leads to a socket.
func (s Socket) Listen() (*Listener, error) {
	if err := CheckPath(s.Path); err != nil {
		return nil, err // nobody could connect
	}
	gid, err := groupID(s.Group)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(s.Path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, errors.New("there is a file that is not a socket: remove it, or set another path")
	}
	making.Lock()
	defer making.Unlock()
	removeLeftovers(filepath.Dir(s.Path))
	dir, err := os.MkdirTemp(filepath.Dir(s.Path), fmt.Sprintf("%s%d-*", makingPrefix, os.Getpid())) // mode 0700
	if err != nil {
		return nil, directoryError(filepath.Dir(s.Path), err)
	}
	defer os.RemoveAll(dir) // on success it is empty
	made := filepath.Join(dir, "s")
	l, err := listen(made)
	if err != nil {
		return nil, err
	}
	open := &Listener{UnixListener: l, path: s.Path}
	if open.info, err = s.place(made, gid); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return open, nil
}

// directoryError adds what to do to an error in making a socket in a directory.
func directoryError(dir string, err error) error {
	var failed *fs.PathError // has a path of ours
	if !errors.As(err, &failed) {
		return err
	}
	remedy := ""
	switch err = failed.Err; {
	case errors.Is(err, fs.ErrNotExist):
		remedy = ": make it for the gate's user, or set another path"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = ": let the gate's user write to it, or set another path"
	}
	return fmt.Errorf("directory %s: %w%s", dir, err, remedy)
}

// Adopt returns the copy of a socket that another process has made at a path. The file belongs
// to that process until Own.
func Adopt(l *net.UnixListener, path string) (*Listener, error) {
	l.SetUnlinkOnClose(false)
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = ErrNotSocket
	}
	if err != nil {
		return nil, err
	}
	open := &Listener{UnixListener: l, path: path, info: info}
	open.shared.Store(true)
	return open, nil
}

// Own makes Close remove the file.
func (l *Listener) Own() { l.shared.Store(false) }

// Share makes Close leave the file, which leads to the copy of another process.
func (l *Listener) Share() { l.shared.Store(true) }

// SetMode changes the permission bits of the file.
func (l *Listener) SetMode(mode fs.FileMode) error {
	info, err := os.Lstat(l.path)
	if err != nil || !os.SameFile(info, l.info) || info.Mode().Perm() == mode.Perm() {
		return err
	}
	return os.Chmod(l.path, mode.Perm())
}

// makingPrefix begins the names of the directories in which sockets are made; the
// number of the process follows. The process holds the lock while it has one.
const makingPrefix = ".socket-"

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

// Path returns the socket's path.
func (l *Listener) Path() string { return l.path }

// InPlace reports whether the path still leads to this socket.
func (l *Listener) InPlace() bool {
	info, err := os.Lstat(l.path)
	return err == nil && os.SameFile(info, l.info)
}

// Close removes the socket, if the path still leads to it, and closes it. It removes it once
// only: as soon as it is closed another file can have its inode number.
func (l *Listener) Close() error {
	var err error
	if !l.shared.Swap(true) && l.InPlace() {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.UnixListener.Close())
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
		return 0, fmt.Errorf("socket_group: %w", err)
	}
	return strconv.Atoi(g.Gid)
}
