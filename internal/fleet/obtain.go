package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"spamgate/internal/atomicfile"
	"spamgate/internal/rcs"
)

// load returns a file with the content of v, read from its begin: by edits, or else as a whole. Own
// is the list's file, and ownSHA its digest; nil if there is none. The caller discards the file.
func (b *buckets) load(ctx context.Context, v *Version, own io.ReadSeeker, ownSHA string, most int64) (file *atomicfile.File, err error) {
	ctx, cancel := context.WithTimeout(ctx, 6*b.transferTime(v.Size))
	defer cancel()
	if v.Size > most {
		return nil, fmt.Errorf("it has %d bytes, more than max_bytes = %d", v.Size, most)
	}
	var errs []error
	if v.Since > 0 {
		if file, err = b.replay(ctx, v, own, ownSHA, most); err == nil {
			return file, nil
		}
		errs = append(errs, err)
	}
	if file, err = b.whole(ctx, v, most); err == nil {
		return file, nil
	}
	b.sayMissing()
	return nil, errors.Join(append(errs, err)...)
}

// replay makes the content of v by its edit and, as far as they are needed, those before it. They
// begin with the own file, or with what the fleet has as a whole.
func (b *buckets) replay(ctx context.Context, v *Version, own io.ReadSeeker, ownSHA string, most int64) (file *atomicfile.File, err error) {
	edits, from := []*Version{v}, own
	var known []*Version
	for version := v; own == nil || version.Base != ownSHA; version = edits[len(edits)-1] {
		if known == nil {
			if known, err = b.versions(ctx, v.Kind, v.List); err != nil {
				return nil, err
			}
		}
		i := slices.IndexFunc(known, func(v *Version) bool { return v.SHA256 == version.Base })
		if i < 0 || len(edits) > maxEdits {
			return nil, fmt.Errorf("%w: the edits before %.12s are missing", errContent, version.SHA256)
		}
		if known[i].Since == 0 {
			if file, err = b.whole(ctx, known[i], most); err != nil {
				return nil, err
			}
			from = file
			break
		}
		edits = append(edits, known[i])
	}
	for _, edit := range slices.Backward(edits) {
		next, err := b.spool(edit.SHA256, func(w io.Writer) error { return edit.apply(w, from, most) })
		if file != nil {
			file.Discard()
		}
		if err != nil {
			return nil, err
		}
		file, from = next, next
	}
	return file, nil
}

// versions returns the versions of a list that the fleet remembers, the newest ones last.
func (b *buckets) versions(ctx context.Context, kind Kind, list string) (all []*Version, err error) {
	linked := b.whileLinked(ctx)
	defer linked.end()
	asking, stop := context.WithTimeout(linked, 4*b.o.times.edit)
	defer stop()
	entries, err := b.history(asking, keyOf(kind, list))
	if asking.Err() != nil { // the library takes the end of the watch for that of the history
		err = context.Cause(asking)
	}
	if err != nil {
		return nil, linked.lost(err)
	}
	for _, e := range entries {
		if v, err := parseVersion(e.Value, list, kind); err == nil {
			all = append(all, v)
		}
	}
	return all, nil
}

// apply writes what the edit makes of the content before. Its digest is not checked.
func (v *Version) apply(w io.Writer, before io.ReadSeeker, most int64) error {
	if _, err := before.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := zstd.NewReader(bytes.NewReader(v.Edit), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return err
	}
	defer z.Close()
	return rcs.Apply(w, before, &limited{z, maxScript}, most)
}

// whole returns a file with the content of v, if that is stored as a whole.
func (b *buckets) whole(ctx context.Context, v *Version, most int64) (*atomicfile.File, error) {
	packed, err := b.get(ctx, v, maxPacked(most))
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return b.spool(v.SHA256, func(w io.Writer) error {
		_, err := io.Copy(w, &limited{z, most})
		return err
	})
}

// spool returns a file with what write writes, which must have the digest. The caller discards it.
func (m *core) spool(sha string, write func(io.Writer) error) (*atomicfile.File, error) {
	file, err := m.tree.CreateUnnamed(workDir, newFile, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	err = write(io.MultiWriter(file, sum))
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != sha {
		err = fmt.Errorf("%w: it has another digest", errContent)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Discard()
		return nil, err
	}
	return file, nil
}
