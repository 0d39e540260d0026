package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A rewriter replaces the list file dir/lists/name as some editor or program does; n
// counts the rewrites.
type rewriter func(dir, name, text string, n int) error

// rewriters are the ways to replace a file, by name. The first rewrite with a symlink
// makes the files that it needs.
var rewriters = map[string]rewriter{
	"in place":            rewriteInPlace,
	"rename":              rewriteRename,
	"symlink swap":        rewriteSymlink,
	"directory swap":      rewriteDirectory,
	"delete and recreate": rewriteRecreate,
}

// rewriteInPlace writes as a shell's ">" does, in several writes.
func rewriteInPlace(dir, name, text string, _ int) error {
	f, err := os.OpenFile(filepath.Join(dir, "lists", name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk([]byte(text), 8192) {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return f.Close()
}

// rewriteRename renames a new file over the old one, as careful programs and sed -i do.
func rewriteRename(dir, name, text string, _ int) error {
	temp := filepath.Join(dir, "lists", "."+name+".new")
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, "lists", name))
}

// rewriteSymlink points a symlink to another file in another directory.
func rewriteSymlink(dir, name, text string, n int) error {
	target := filepath.Join(dir, "versions", fmt.Sprint(name, ".", n))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target, []byte(text), 0o644); err != nil {
		return err
	}
	return swapSymlink(target, filepath.Join(dir, "lists", name))
}

// rewriteDirectory replaces the file as Kubernetes does for a mounted ConfigMap: the
// list is a symlink to ..data/name, and ..data is a symlink to a directory, which is
// replaced.
func rewriteDirectory(dir, name, text string, n int) error {
	lists := filepath.Join(dir, "lists")
	version := fmt.Sprint("..", name, ".", n)
	if err := os.Mkdir(filepath.Join(lists, version), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(lists, version, name), []byte(text), 0o644); err != nil {
		return err
	}
	data := "..data-" + name
	if err := swapSymlink(version, filepath.Join(lists, data)); err != nil {
		return err
	}
	link, want := filepath.Join(lists, name), filepath.Join(data, name)
	if got, _ := os.Readlink(link); got == want {
		return nil
	}
	return swapSymlink(want, link)
}

// swapSymlink replaces a symlink in one step.
func swapSymlink(target, link string) error {
	temp := link + ".new"
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	return os.Rename(temp, link)
}

// rewriteRecreate deletes the file and writes it again.
func rewriteRecreate(dir, name, text string, _ int) error {
	path := filepath.Join(dir, "lists", name)
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
