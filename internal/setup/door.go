package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/internal/term"
	"spamgate/internal/unixsocket"
)

// doors checks the addresses of the doors.
func (f *faults) doors() {
	for _, d := range f.config.Doors {
		key := d.Key("addr")
		if path, ok := d.Unix(); ok {
			f.doorSocket(key, path)
			continue
		}
		f.listenAddress(key, d.Addr)
	}
}

// doorSocket checks the path of a door's unix socket. Other programs open it by the whole
// path, whose length is bounded.
func (f *faults) doorSocket(key, path string) {
	parent := filepath.Dir(path)
	info, err := os.Lstat(path)
	dir, dirErr := os.Stat(parent)
	switch {
	case unixsocket.TooLong(path) != "":
		f.fail(key, unixsocket.TooLong(path), "write a shorter path")
	case slices.Contains(f.config.HopAddrs(), "lmtp+unix:"+path):
		f.fail(key, path+" is the next hop's socket", "write another path")
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		f.fail(key, path+" exists and is not a socket", "remove it, or write another path")
	case errors.Is(dirErr, fs.ErrNotExist):
		f.fail(key, "there is no directory "+parent, makeSocketDir(parent))
	case dirErr == nil && !dir.IsDir():
		f.fail(key, parent+" is not a directory", "write another path")
	}
}

// makeSocketDir returns how to make the directory of a door's socket. systemd makes only
// those below /run.
func makeSocketDir(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil || strings.HasPrefix(full, "/run/") || strings.HasPrefix(full, "/var/run/") {
		return "make it for the gate's user (RuntimeDirectory= in the unit), or write another path"
	}
	full = term.ShellWord(full)
	return "make it: install -d -o spamgate -g postfix -m 0710 " + full + ", and add it to ReadWritePaths= (systemctl edit spamgate)"
}
