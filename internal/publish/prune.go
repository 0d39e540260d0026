package publish

import (
	"errors"
	"io/fs"
	"slices"
)

// maxDeltas bounds the deltas of a list. Those that fetch it follow up to 64.
const maxDeltas = 32

// prune removes the oldest deltas, if there are too many, or if all together are larger than
// the list: who would need them all is better off with the list.
func (p *publication) prune(size int64) error {
	entries, err := p.tree.ReadDir(p.Name + deltaSuffix)
	if err != nil {
		return err
	}
	var deltas []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Type().IsRegular() && isSum(e.Name()) {
			deltas = append(deltas, info)
		}
	}
	slices.SortStableFunc(deltas, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var errs []error
	for i, info := range deltas {
		if size -= info.Size(); i >= maxDeltas || size < 0 {
			errs = append(errs, p.tree.Remove(p.deltaName(info.Name())))
		}
	}
	return errors.Join(errs...)
}
