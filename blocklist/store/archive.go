package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"spamgate/internal/atomicfile"
)

// archiver saves the versions that went live in the history, one at a time and in the
// background: a list of some gigabytes takes a while.
type archiver struct {
	mu      sync.Mutex
	jobs    map[string]archiveJob // by list: the latest; what was replaced before its turn is not kept
	running bool
	failing bool // the last one was not kept, as was logged

	seen map[string]*version // by list: what was looked at last
}

type archiveJob struct {
	version *version
	live    time.Time
	history int
}

// archive starts to save the versions of a Set that are not in the history yet. They include
// those whose index a start has found: the process that made the index may have been stopped before
// it saved the version, or could not start because of another list.
func (s *Store) archive(set *snapshot) {
	if s.ended || s.config.History == 0 || !s.state.writable() {
		return
	}
	a := &s.archiver
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.seen
	a.seen = map[string]*version{} // or versions would stay of lists that are gone
	for i, name := range set.names {
		v := set.versions[i]
		a.seen[name] = v
		if v == emptyVersion || before[name] == v {
			continue
		}
		if a.jobs == nil {
			a.jobs = map[string]archiveJob{}
		}
		a.jobs[name] = archiveJob{v, time.Now().UTC(), s.config.History}
	}
	if len(a.jobs) > 0 && !a.running {
		a.running = true
		s.running.Go(s.archiveAll)
	}
}

func (s *Store) archiveAll() {
	a := &s.archiver
	for {
		a.mu.Lock()
		if len(a.jobs) == 0 || s.ctx.Err() != nil {
			a.running = false
			a.mu.Unlock()
			return
		}
		list := slices.Min(slices.Collect(maps.Keys(a.jobs)))
		job := a.jobs[list]
		delete(a.jobs, list)
		a.mu.Unlock()
		dir := path.Join(ListName(list), historyName)
		err := s.state.tree.MakeDirs(dir)
		if err == nil {
			err = archiveVersion(s.ctx, s.state.tree, dir, job, s.stepAside)
		}
		if s.ctx.Err() == nil {
			s.archived(list, err)
		}
	}
}

// stepAside waits while lists are looked at or read. Their change should be live soon, and
// shares the processors and the disk with what has time.
func (s *Store) stepAside() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// asideReader is a Reader that calls stepAside before each Read.
type asideReader struct {
	io.Reader
	stepAside func()
}

func (r asideReader) Read(p []byte) (int, error) {
	r.stepAside()
	return r.Reader.Read(p)
}

// archived notes whether a version was saved. If the disk was full or the like, it is tried
// again with the next Set.
func (s *Store) archived(list string, err error) {
	a := &s.archiver
	switch {
	case err == nil:
		a.failing = false
		return
	case errors.Is(err, ErrChanged), errors.Is(err, fs.ErrNotExist):
		s.state.log.Debug("version not kept, its files have changed since", "list", list)
		return
	case a.failing:
		s.state.log.Debug("version not kept", "list", list, "error", err)
	default:
		a.failing = true
		s.state.log.Warn("version not kept, rolling back to it will not be possible", "list", list, "error", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, list)
}

// archiveVersion saves what a version was made of, if its files still hold that, and
// removes the versions that are too old. It saves a content once, under the time at
// which it last went live: that a start finds it again is not such a time. It calls
// stepAside again and again while it packs files, which may take its time.
func archiveVersion(ctx context.Context, tree atomicfile.Tree, dir string, job archiveJob, stepAside func()) error {
	sum := sumOf(job.version.stamps)
	if sum == "" {
		return nil
	}
	unlock, err := tree.Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := historyNames(tree, dir)
	if err != nil {
		return err
	}
	same := slices.IndexFunc(names, func(name string) bool {
		m, err := readVersionMeta(tree, path.Join(dir, name))
		return err == nil && m.Sum == sum
	})
	live := job.live
	if last := len(names) - 1; last >= 0 && last != same {
		// After what was kept before, also where the clock was ahead then.
		if next := idTime(names[last]).Add(time.Millisecond); next.After(live) {
			live = next
		}
	}
	final := path.Join(dir, live.Format(versionTime)+"-"+sum[:12])
	switch {
	case same < 0:
		err = packVersion(ctx, tree, path.Join(dir, unfinishedName), final, sum, job.version, stepAside)
	case !job.version.fresh:
		return nil
	case names[same] < path.Base(final): // else another process has kept it, and no earlier than we
		err = tree.Rename(path.Join(dir, names[same]), final)
	}
	if err != nil {
		return err
	}
	return dropOld(tree, dir, job.history)
}

// packVersion copies the files of a version to a temporary directory, which becomes the
// final one. What is there was left by a process that was killed: nobody else has the
// lock.
func packVersion(ctx context.Context, tree atomicfile.Tree, temporary, final, sum string, v *version, stepAside func()) error {
	if err := tree.RemoveAll(temporary); err != nil {
		return err
	}
	if err := tree.MakeDirs(temporary); err != nil {
		return err
	}
	defer tree.RemoveAll(temporary)
	meta := versionMeta{Entries: v.Entries, Sum: sum}
	for i, s := range v.stamps {
		if err := packFile(ctx, tree, path.Join(temporary, packedName(i)), s, stepAside); err != nil {
			return err
		}
		meta.Files = append(meta.Files, versionFileMeta{s.Path, s.Size, hex.EncodeToString(s.Digest[:])})
	}
	return finishVersion(tree, temporary, final, meta)
}

// finishVersion makes a temporary directory with packed files a saved version.
func finishVersion(tree atomicfile.Tree, temporary, final string, meta versionMeta) error {
	text, err := json.MarshalIndent(meta, "", "\t")
	if err == nil {
		err = tree.WriteFile(path.Join(temporary, metaName), temporary, newPattern, append(text, '\n'))
	}
	if err == nil {
		err = tree.Rename(temporary, final)
	}
	if err != nil {
		return err
	}
	return tree.Sync(path.Dir(final))
}

// packFile copies a file, which must still hold what the stamp says.
func packFile(ctx context.Context, tree atomicfile.Tree, to string, from stamp, stepAside func()) error {
	return pack(tree, to, func(w io.Writer) error {
		got, err := Opener{StateDir: tree.Dir()}.readStamped(ctx, from.Path, func(r io.Reader) error {
			_, err := io.Copy(w, asideReader{r, stepAside})
			return err
		})
		if err == nil && got.Digest != from.Digest {
			err = ErrChanged
		}
		return err
	})
}

// pack writes what write writes to a new file, packed.
func pack(tree atomicfile.Tree, to string, write func(io.Writer) error) error {
	f, err := tree.Append(to)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("%s: %w", tree.Path(to), err)
	}
	err = write(z)
	if errClose := z.Close(); err == nil {
		err = errClose
	}
	if err == nil {
		err = atomicfile.Sync(f)
	}
	return err
}

// historyNames returns the names of the saved versions, the oldest first.
func historyNames(tree atomicfile.Tree, dir string) ([]string, error) {
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// A version before a large change is kept for largeAge, so that small ones after it do not push it
// out: at most largeMost of them. Large is a change of the number of entries by largeEntries, or by
// a tenth of at least 100.
const (
	largeAge     = 30 * 24 * time.Hour
	largeMost    = 20
	largeEntries = 1000
)

// beforeLarge returns which versions to keep because of the change that came after them.
func beforeLarge(tree atomicfile.Tree, dir string, names []string, now time.Time) map[string]bool {
	keep := map[string]bool{}
	entries := make([]int, len(names))
	for i, name := range names {
		m, err := readVersionMeta(tree, path.Join(dir, name))
		if err != nil {
			return keep // it has just been dropped, or is damaged
		}
		entries[i] = m.Entries
	}
	for i := len(names) - 2; i >= 0 && len(keep) < largeMost && now.Sub(idTime(names[i+1])) < largeAge; i-- {
		most := max(entries[i], entries[i+1])
		change := most - min(entries[i], entries[i+1])
		if change >= largeEntries || most >= 100 && change >= most/10 {
			keep[names[i]] = true
		}
	}
	return keep
}

// dropOld removes all but the newest version and some before it. It keeps the pinned one, and those
// before large changes.
func dropOld(tree atomicfile.Tree, dir string, before int) error {
	names, err := historyNames(tree, dir)
	if err != nil {
		return err
	}
	pin, err := readPin(tree, path.Dir(dir))
	if err != nil {
		return err
	}
	large := beforeLarge(tree, dir, names, time.Now())
	for _, name := range names[:max(0, len(names)-before-1)] {
		if large[name] || pin != nil && strings.HasSuffix(name, "-"+pin.Sum[:min(12, len(pin.Sum))]) {
			continue
		}
		if err := tree.RemoveAll(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
