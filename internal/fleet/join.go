package fleet

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strconv"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
)

// join decides about a list that had a content before it was shared. If the fleet's version
// has all its entries, that is taken; if the fleet's version has no entries, the file is
// published. Else an admin has to decide.
func (l *list) join(ctx context.Context, b *buckets, v view, revision uint64) (again bool, err error) {
	own, err := l.open()
	if err != nil {
		return false, err
	}
	if own == nil {
		return true, nil
	}
	defer own.Close()
	if none, err := l.isEmpty(own); err != nil || none {
		if err == nil {
			err = l.take(ctx, b, v, revision)
		}
		return true, err
	}
	content, err := b.load(ctx, v.remote, nil, "", l.MaxBytes)
	if err != nil {
		return false, fmt.Errorf("reading %v: %w", v.remote, err)
	}
	defer content.Discard()
	missing, theirs, err := l.compare(own, content.File)
	switch {
	case err != nil:
		return false, err
	case missing == 0:
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
		if err := l.replaceWith(ctx, v, content.File); err != nil {
			return false, fmt.Errorf("taking %v: %w", v.remote, err)
		}
		return true, l.taken(v.remote, revision)
	case theirs == 0:
		return true, l.publishFile(ctx, b, v, revision)
	case l.Kind == Accounts:
		return false, fmt.Errorf("%w (accounts here that the fleet does not have alike: %d)", ErrDiffers, missing)
	}
	return false, fmt.Errorf("%w (entries here that the fleet does not have: %d)", ErrDiffers, missing)
}

// compare returns how many entries or accounts of the file the fleet's content lacks, and how
// many that has.
func (l *list) compare(own, content *os.File) (missing, theirs int, err error) {
	if l.Kind == Accounts {
		mine, fleets, err := readBoth(own, content, l.MaxBytes)
		if err != nil {
			return 0, 0, err
		}
		return l.m.o.Accounts.Compare(mine, fleets)
	}
	c, err := l.compareEntries(own, content)
	if err != nil {
		return 0, 0, err
	}
	return len(c.missing) + c.invalid, c.theirs, nil
}

// isEmpty reports whether a file has no entry, and nothing that might be one. That of the accounts has none if it has no text.
func (l *List) isEmpty(file io.ReadSeeker) (bool, error) {
	if l.Kind == Accounts {
		size, err := file.Seek(0, io.SeekEnd)
		return size == 0, err
	}
	invalid, err := l.eachEntry(file, func(listfile.Entry) error { return errEntry })
	if errors.Is(err, errEntry) {
		return false, nil
	}
	return err == nil && invalid == 0, err
}

var errEntry = errors.New("there is an entry")

// comparison is how a list differs from the fleet's.
type comparison struct {
	missing map[uint64]bool // hashes of own entries that the fleet does not have
	invalid int             // own lines that are no entries, which are not compared
	theirs  int             // how many entries the fleet has
	seed    maphash.Seed
}

// maxCompared bounds the entries of an own list, which are held in memory.
const maxCompared = 2_000_000

// compareEntries compares the entries of two lists, without their reasons.
func (l *List) compareEntries(own, fleets io.ReadSeeker) (c *comparison, err error) {
	c = &comparison{missing: map[uint64]bool{}, seed: maphash.MakeSeed()}
	c.invalid, err = l.eachEntry(own, func(e listfile.Entry) error {
		c.missing[c.hash(e)] = true
		if len(c.missing) > maxCompared {
			return fmt.Errorf("%w (it is too long to compare)", ErrDiffers)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, err = l.eachEntry(fleets, func(e listfile.Entry) error {
		c.theirs++
		delete(c.missing, c.hash(e))
		return nil
	})
	return c, err
}

func (c *comparison) hash(e listfile.Entry) uint64 {
	return maphash.Comparable(c.seed, [2]string{listedit.Key(e), strconv.FormatBool(e.Exception)})
}

// eachEntry calls use for each entry of a list, also if its time is over, and counts the invalid
// lines.
func (l *List) eachEntry(r io.ReadSeeker, use func(listfile.Entry) error) (invalid int, err error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	o := l.Options
	o.Now = 1
	in := listfile.NewReader(r, o)
	for e, err := range in.All() {
		if err == nil {
			err = use(e)
		}
		if err != nil {
			return 0, err
		}
	}
	return in.Result().Invalid, nil
}

// Take makes the fleet's version of a list the file, whatever that has now. What it has stays
// in the list's history, if it was live.
func (m *Member) Take(ctx context.Context, name string) error {
	l, err := m.list(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	l.force = true
	m.mu.Unlock()
	err = m.CatchUp(ctx, name)
	m.mu.Lock()
	l.force = false
	m.mu.Unlock()
	return err
}

// Merge adds the entries of the file that the fleet's version does not have to that, and
// makes the result the fleet's version. The file then has it too. Added is how many entries or
// accounts the fleet's version did not have.
func (m *Member) Merge(ctx context.Context, name, author, why string) (added int, err error) {
	l, err := m.list(name)
	if err != nil {
		return 0, err
	}
	if l.Kind == Fetched {
		return 0, fmt.Errorf("%s is not a list whose entries can be merged: take the fleet's", name)
	}
	for deadline := time.Now().Add(m.o.times.conflict); ; m.sleep(ctx, m.o.times.retry/5) {
		added, err = l.merge(ctx, author, why)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil || !errors.Is(err, ErrBehind) && !errors.Is(err, errMoved) {
			return added, err
		}
	}
}

func (l *list) merge(ctx context.Context, author, why string) (added int, err error) {
	b, err := l.m.reach(ctx)
	if err != nil {
		return 0, err
	}
	if err := l.refresh(ctx, b); err != nil {
		return 0, l.m.offline(err)
	}
	_, r := l.seen()
	if r.err != nil || r.version == nil {
		return 0, r.err // without a version the gate publishes its own
	}
	local, err := l.digest()
	if err != nil || local == "" || local == r.version.SHA256 {
		return 0, err
	}
	content, err := b.load(ctx, r.version, nil, "", l.MaxBytes)
	if err != nil {
		return 0, err
	}
	defer content.Discard()
	v := l.newVersion(nil, r.version, "", 0)
	v.Author, v.Why, v.Accepted = author, why, true
	if l.Kind == Accounts {
		return l.mergeAccounts(ctx, b, v, r, content.File, local)
	}
	added, err = l.appendMissing(content)
	switch {
	case err != nil:
		return 0, err
	case added == 0: // the fleet's version has all, or more
		return 0, l.m.Take(ctx, l.Name)
	}
	v.What = fmt.Sprintf("merged %d entries of this gate", added)
	return added, l.replaceMerged(ctx, b, v, r, content, local)
}

// appendMissing appends the own entries that the fleet's content lacks.
func (l *list) appendMissing(content *atomicfile.File) (added int, err error) {
	own, err := l.open()
	if err != nil || own == nil {
		return 0, err
	}
	defer own.Close()
	c, err := l.compareEntries(own, content.File)
	if err != nil || len(c.missing) == 0 {
		return 0, err
	}
	end, err := content.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(content)
	last := []byte{'\n'}
	if end > 0 {
		if _, err := content.ReadAt(last, end-1); err != nil {
			return 0, err
		}
	}
	if last[0] != '\n' {
		_ = out.WriteByte('\n') // an error shows in Flush
	}
	_, err = l.eachEntry(own, func(e listfile.Entry) error {
		if h := c.hash(e); c.missing[h] {
			delete(c.missing, h)
			added++
			_, _ = out.WriteString(listfile.LineOf(e, l.Options).String() + "\n")
		}
		return nil
	})
	return added, errors.Join(err, out.Flush())
}

// replaceMerged publishes a merged content, and makes it the file.
func (l *list) replaceMerged(ctx context.Context, b *buckets, v *Version, r *remote, content *atomicfile.File, local string) error {
	var done func(placed bool)
	o := listedit.Options{
		StateDir: l.m.o.StateDir, MaxBytes: l.MaxBytes, Log: &listedit.Log{Dir: l.m.o.StateDir},
		Publish: func(ctx context.Context, c listedit.Change, _, merged *os.File) (err error) {
			v.SHA256, v.Size = hex.EncodeToString(c.SHA256[:]), c.Size
			if l.m.o.Accept != nil {
				if err := l.m.o.Accept(l.Name, c.SHA256); err != nil {
					return err
				}
			}
			done, err = l.proposeEdit(ctx, b, v, nil, nil, merged, r.revision)
			return err
		},
	}
	record := listedit.NewRecord("fleet join", l.Name, l.Path)
	record.By, record.What, record.Why = v.Author, v.What, v.Why
	o.Record = record
	_, err := listedit.Rewrite(ctx, l.Path, func(old io.ReadSeeker, w io.Writer) error {
		if err := l.unmoved(old, local); err != nil {
			return err
		}
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, content.File)
		return err
	}, o)
	if done != nil {
		done(err == nil)
	}
	if err == nil && l.m.o.Applied != nil {
		l.m.o.Applied(l.Name, v)
	}
	return err
}
