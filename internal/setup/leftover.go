package setup

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
)

// maxLeftOver is how many files of lists that are gone are named.
const maxLeftOver = 10

// leftOver warns of entries in the files of managed lists that the configuration does not have: a list
// that got another name begins empty.
func (f *faults) leftOver() {
	tree := atomicfile.In(f.config.State.Dir)
	files, err := tree.ReadDir(managedDir)
	if err != nil {
		return // there is none, or this user may not see it
	}
	named := 0
	for _, file := range files {
		path := managedDir + "/" + file.Name()
		name, ok := strings.CutSuffix(file.Name(), ".txt")
		if !ok || !file.Type().IsRegular() || f.isManaged(tree.Path(path)) || !hasLines(tree, path) {
			continue
		}
		if named++; named > maxLeftOver {
			return
		}
		f.warn("state.dir", fmt.Sprintf("%s has the entries of a managed list that is not configured, and they do not count", tree.Path(path)),
			fmt.Sprintf("write name = %q and managed = true into a [[list]] to have them again, or remove the file", name))
	}
}

// managedDir is the directory of managed lists in the state directory.
const managedDir = "managed"

// isManaged reports whether a file is that of a managed list.
func (f *faults) isManaged(path string) bool {
	return slices.ContainsFunc(f.config.Lists, func(l config.List) bool { return l.Managed && filepath.Clean(l.Copy) == path })
}

// hasLines reports whether a list has more than comments, or may have.
func hasLines(tree atomicfile.Tree, path string) bool {
	file, err := tree.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	found := false
	err = listfile.FirstWords(io.LimitReader(file, 64<<10), func(int, string, error) bool {
		found = true
		return false
	})
	return found || err != nil
}
