package listedit

import (
	"io/fs"
	"os"
	"path/filepath"

	"spamgate/internal/atomicfile"
)

// inState returns the name of a path in StateDir, if it is in there.
func (o *Options) inState(path string) (tree atomicfile.Tree, name string, ok bool) {
	if o.StateDir == "" {
		return tree, "", false
	}
	tree = atomicfile.In(o.StateDir)
	name, ok = tree.Name(path)
	return tree, name, ok
}

// openInState opens a file in the state directory.
func openInState(path string, tree atomicfile.Tree, name string) (*original, error) {
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	return newOriginal(original{path: path, target: path, file: file, tree: tree, name: name})
}

// stat returns the FileInfo of what the path leads to now.
func (f *original) stat() (fs.FileInfo, error) {
	if f.name != "" {
		return f.tree.StatFile(f.name)
	}
	target, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return nil, err
	}
	return os.Stat(target)
}
