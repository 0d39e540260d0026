package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"spamgate/internal/atomicfile"
)

// VersionInfo describes a kept version of a list.
type VersionInfo struct {
	ID      string    // names it for [ExtractVersion]
	Time    time.Time // when it went live
	Entries int
	Sum     string   // its [Opener.ContentSum]
	Files   []string // the list's files then

	// FileSums are the SHA-256 of the Files, in hexadecimal.
	FileSums []string

	Bytes int64 // of those
}

// versionMeta is a kept version's meta.json.
type versionMeta struct {
	Entries int               `json:"entries"`
	Sum     string            `json:"sum"`
	Files   []versionFileMeta `json:"files"`
}

type versionFileMeta struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	metaName = "meta.json"

	// versionTime is how an ID begins, so that IDs are ordered by time.
	versionTime = "20060102T150405.000Z"
)

// Versions returns the saved versions of a list, the newest first. The first is most often
// the one that serves. It is not an error if there are none.
func Versions(stateDir, list string) ([]VersionInfo, error) {
	tree, dir := atomicfile.In(stateDir), path.Join(ListName(list), historyName)
	entries, err := tree.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of list %q: %w", list, err)
	}
	var versions []VersionInfo
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // is being made
		}
		m, err := readVersionMeta(tree, path.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // has just been dropped
		}
		if err != nil {
			return nil, fmt.Errorf("reading the history of list %q: %w", list, err)
		}
		v := VersionInfo{ID: e.Name(), Time: idTime(e.Name()), Entries: m.Entries, Sum: m.Sum}
		for _, f := range m.Files {
			v.Files, v.FileSums = append(v.Files, f.Path), append(v.FileSums, f.SHA256)
			v.Bytes += f.Size
		}
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b VersionInfo) int { return strings.Compare(b.ID, a.ID) })
	return versions, nil
}

// idTime returns the time that an ID begins with; zero if there is none.
func idTime(id string) time.Time {
	instant, _ := time.Parse(versionTime, id[:min(len(id), len(versionTime))])
	return instant
}

func readVersionMeta(tree atomicfile.Tree, dir string) (versionMeta, error) {
	var m versionMeta
	name := path.Join(dir, metaName)
	text, err := tree.ReadFile(name, maxSmall)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", tree.Path(name), err)
	}
	return m, nil
}

// ExtractVersion calls file for each file of a saved version, with its path in the list.
// Reading the content ends with an error if it is not what was saved. So read it to its end
// before you use it.
func ExtractVersion(stateDir, list, id string, file func(path string, content io.Reader) error) error {
	if id == "" || id != filepath.Base(id) || id[0] == '.' {
		return fmt.Errorf("list %q has no version %q", list, id)
	}
	tree, dir := atomicfile.In(stateDir), path.Join(ListName(list), historyName, id)
	m, err := readVersionMeta(tree, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list %q has no version %q: %w", list, id, err)
	}
	if err != nil {
		return fmt.Errorf("extracting version %s of list %q: %w", id, list, err)
	}
	for i, f := range m.Files {
		if err := extractFile(tree, path.Join(dir, packedName(i)), f, file); err != nil {
			return fmt.Errorf("extracting version %s of list %q: %w", id, list, err)
		}
	}
	return nil
}

func packedName(i int) string { return strconv.Itoa(i) + ".zst" }

func extractFile(tree atomicfile.Tree, packed string, m versionFileMeta, file func(path string, content io.Reader) error) error {
	f, err := tree.Open(packed)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("%s: %w", tree.Path(packed), err)
	}
	defer z.Close()
	return file(m.Path, &summedReader{from: z, name: tree.Path(packed), want: m.SHA256, hash: sha256.New()})
}

// errOtherContent is the error of a saved file that was changed.
var errOtherContent = errors.New("damaged: it is not what was kept")

// summedReader compares what was read with its sum, at the end.
type summedReader struct {
	from io.Reader
	name string
	want string
	hash hash.Hash
}

func (r *summedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.hash.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(r.hash.Sum(nil)) != r.want {
		err = errOtherContent
	}
	if err != nil && err != io.EOF {
		err = &fs.PathError{Op: "read", Path: r.name, Err: err}
	}
	return n, err
}

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
