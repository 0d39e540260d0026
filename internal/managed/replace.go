package managed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
)

// Replacement is a new content of a list.
type Replacement struct {
	Command string // for the audit log: "import", "rollback" ...
	What    string // what it did, for the audit log; "": the changed entries say it

	// Base is the SHA-256 in hexadecimal of the content that is replaced; "": any.
	// Another content is an ErrConflict.
	Base string

	Content io.Reader
}

// Replace replaces the whole content of a list. The lines should be valid: others are left out
// when the gate reads them, or hold the list.
func (e *Editor) Replace(ctx context.Context, by By, list string, r Replacement, o Options) (Result, error) {
	l, err := e.list(list)
	if err != nil {
		return Result{}, err
	}
	content, err := e.spool(r.Content, maxBytes(l))
	if err != nil {
		return Result{}, fmt.Errorf("list %s: %w", list, err)
	}
	defer content.Discard()
	r.Content = content
	return e.replace(ctx, by, list, r, o, false)
}

// replace replaces the content of a list by one that can be read at once. Whole says that it
// is wanted as it is, whatever the list has now.
func (e *Editor) replace(ctx context.Context, by By, list string, r Replacement, o Options, whole bool) (Result, error) {
	return e.rewrite(ctx, by, list, r.Command, o, whole, func(old io.ReadSeeker, w io.Writer, record *listedit.Record) error {
		record.What = r.What
		if r.Base != "" {
			sum := sha256.New()
			if _, err := io.Copy(sum, old); err != nil {
				return err
			}
			if hex.EncodeToString(sum.Sum(nil)) != r.Base {
				return ErrConflict
			}
		}
		if again, ok := r.Content.(io.Seeker); ok { // after another gate was faster
			if _, err := again.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		n, err := io.Copy(w, r.Content)
		if err == nil && n == 0 {
			_, err = io.WriteString(w, listedit.NoEntries+"\n")
		}
		return err
	})
}

// spool copies a new content to the disk, since its sender may be slow: nobody else can edit
// the list while it is replaced.
func (e *Editor) spool(content io.Reader, most int64) (*atomicfile.File, error) {
	tree := atomicfile.In(e.config().State.Dir)
	if err := tree.MakeDirs(Dir); err != nil {
		return nil, err
	}
	file, err := tree.CreateUnnamed(Dir, newPattern, 0o600)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(file, io.LimitReader(content, most+1))
	if err == nil && n > most {
		err = ErrTooLarge
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Discard()
		return nil, fmt.Errorf("taking the new content: %w", err)
	}
	return file, nil
}

// rewrite replaces the content of a list by what change writes. Change may describe it in
// record.What. The records of the entries that have changed are added, if they are not too
// many.
func (e *Editor) rewrite(ctx context.Context, by By, list, command string, o Options, whole bool, change func(old io.ReadSeeker, w io.Writer, record *listedit.Record) error) (Result, error) {
	l, err := e.list(list)
	if whole && errors.Is(err, ErrMissing) {
		l.Paths, err = []string{l.Copy}, nil
	}
	if err != nil {
		return Result{}, err
	}
	edit := e.edit(by, l, command, o)
	edit.whole = whole
	return edit.do(ctx, func(old io.ReadSeeker, w io.Writer) error {
		readerAt, ok := old.(io.ReaderAt)
		if !ok {
			return errors.New("the file cannot be read at any place")
		}
		d := &difference{old: readerAt, w: w}
		if err := change(old, d, edit.record); err != nil {
			return err
		}
		changed, same, err := d.end()
		if err != nil {
			return err
		}
		if same {
			return listedit.ErrUnchanged
		}
		return edit.describe(changed)
	})
}

// difference passes on the new content of a list, and notes where it differs from the old one.
type difference struct {
	old io.ReaderAt
	w   io.Writer

	same    int64 // bytes at the beginning that both have
	differs bool
	rest    bytes.Buffer // of the new content after them
	over    bool         // it is too long
}

// maxDifference bounds the text in which changed entries are looked for, in bytes: some 250,000
// entries. A command that changes more has no ID, and a rollback takes it back.
const maxDifference = 8 << 20

// Write implements io.Writer.
func (d *difference) Write(p []byte) (int, error) {
	rest := p
	if !d.differs {
		old := make([]byte, len(p))
		n, err := d.old.ReadAt(old, d.same)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		common := 0
		for common < n && old[common] == p[common] {
			common++
		}
		d.same += int64(common)
		d.differs = common < len(p)
		rest = p[common:]
	}
	if d.over = d.over || d.rest.Len()+len(rest) > maxDifference; !d.over {
		d.rest.Write(rest)
	}
	return d.w.Write(p)
}

// texts are the parts of a list before and after a change, in whole lines.
type texts struct{ before, after []byte }

// end returns the parts that differ; nil if they are too long. Same reports whether there are
// none.
func (d *difference) end() (changed *texts, same bool, err error) {
	begin := max(0, d.same-listfile.MaxLine)
	common := make([]byte, d.same-begin)
	if _, err := d.old.ReadAt(common, begin); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	rest, err := io.ReadAll(io.NewSectionReader(d.old, d.same, maxDifference+1))
	if err != nil {
		return nil, false, err
	}
	end := bytes.LastIndexByte(common, '\n')
	if same := !d.differs && len(rest) == 0; same || d.over || len(rest) > maxDifference || end < 0 && begin > 0 {
		return nil, same, nil
	}
	line := common[end+1:]
	return &texts{bytes.Join([][]byte{line, rest}, nil), bytes.Join([][]byte{line, d.rest.Bytes()}, nil)}, false, nil
}
