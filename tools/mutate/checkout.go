package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkout is a temporary copy of the files that git tracks or would add.
type checkout struct {
	dir    string
	module string            // its path
	clean  map[string][]byte // files as they were before bugs came
}

// newCheckout copies the working tree of the current directory.
func newCheckout() (*checkout, error) {
	root, err := output("git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	root = strings.TrimSpace(root)
	files, err := output("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	c := &checkout{dir: dir, clean: map[string][]byte{}}
	for name := range strings.SplitSeq(strings.Trim(files, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			c.remove()
			return nil, err
		}
	}
	c.module, err = output("go", "-C", dir, "list", "-m")
	c.module = strings.TrimSpace(c.module)
	return c, err
}

func (c *checkout) remove() { os.RemoveAll(c.dir) }

// read returns a file as it was before bugs came.
func (c *checkout) read(name string) ([]byte, error) {
	if text, ok := c.clean[name]; ok {
		return text, nil
	}
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err == nil {
		c.clean[name] = text
	}
	return text, err
}

// write writes a file.
func (c *checkout) write(name string, text []byte) error {
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// fits reports why a bug does not fit its file.
func (c *checkout) fits(b *bug) error {
	text, err := c.read(b.File)
	if n := strings.Count(string(text), b.Old); err == nil && n != 1 {
		err = fmt.Errorf("%s has the old text %d times", b.File, n)
	}
	return err
}

// copyFile copies a file with its mode. It skips a file that git tracks but that was
// removed.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// output runs a command and returns its output.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}
