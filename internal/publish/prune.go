package publish

import (
	"errors"
	"io/fs"
	"slices"
)

// maxPatches bounds the patches of a list. Those that fetch it follow up to 64.
const maxPatches = 32

// prune removes the oldest patches, if there are too many, or if all together are larger than
// the list: who would need them all is better off with the list.
func (p *publication) prune(size int64) error {
	entries, err := p.tree.ReadDir(p.Name + patchesSuffix)
	if err != nil {
		return err
	}
	var patches []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Type().IsRegular() && patchFile.MatchString(e.Name()) {
			patches = append(patches, info)
		}
	}
	slices.SortStableFunc(patches, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var errs []error
	for i, info := range patches {
		if size -= info.Size(); i >= maxPatches || size < 0 {
			errs = append(errs, p.tree.Remove(p.patchPath(info.Name())))
		}
	}
	return errors.Join(errs...)
}
