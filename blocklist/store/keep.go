package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"time"

	"spamgate/internal/atomicfile"
)

// Kept is a content for [KeepVersion].
type Kept struct {
	Path    string // the list's file
	Entries int
	Content io.Reader
}

// KeepVersion saves a content in the history of a list of one file, as if it had gone live now,
// so that the list can be pinned there ([PinList]). Another gate had it.
func KeepVersion(ctx context.Context, stateDir, list string, k Kept) error {
	tree, dir := atomicfile.In(stateDir), path.Join(ListName(list), historyName)
	err := tree.MakeDirs(dir)
	if err == nil {
		err = keepVersion(ctx, tree, dir, k)
	}
	if err != nil {
		return fmt.Errorf("saving a version of list %q: %w", list, err)
	}
	return nil
}

func keepVersion(ctx context.Context, tree atomicfile.Tree, dir string, k Kept) error {
	unlock, err := tree.Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	temporary := path.Join(dir, unfinishedName)
	if err := tree.RemoveAll(temporary); err != nil {
		return err
	}
	if err := tree.MakeDirs(temporary); err != nil {
		return err
	}
	defer tree.RemoveAll(temporary)
	hash, size := sha256.New(), int64(0)
	err = pack(tree, path.Join(temporary, packedName(0)), func(w io.Writer) (err error) {
		size, err = io.Copy(io.MultiWriter(w, hash), contextReader{ctx, k.Content})
		return err
	})
	if err != nil {
		return err
	}
	digest := [sha256.Size]byte(hash.Sum(nil))
	sum := contentSum([][sha256.Size]byte{digest})
	live := time.Now().UTC()
	names, err := historyNames(tree, dir)
	if err != nil {
		return err
	}
	if len(names) > 0 { // after what was kept before, also where the clock was ahead then
		if next := idTime(names[len(names)-1]).Add(time.Millisecond); next.After(live) {
			live = next
		}
	}
	final := path.Join(dir, live.Format(versionTime)+"-"+sum[:12])
	return finishVersion(tree, temporary, final, versionMeta{
		Entries: k.Entries, Sum: sum, Files: []versionFileMeta{{k.Path, size, hex.EncodeToString(digest[:])}},
	})
}

// contextReader is a Reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
