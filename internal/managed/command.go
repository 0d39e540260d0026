package managed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
	"spamgate/internal/text"
)

// What one command did has one ID, which all its records have. The records of a command with many
// entries would make the audit log unreadable: it has one record, and a file in undoDir the rest.
const (
	undoDir    = "undo"
	undoSuffix = ".json.zst"

	// keepUndo is how long such a file stays at least, and then as long as the log has its record.
	keepUndo = 30 * 24 * time.Hour

	// maxUndo bounds such a file, unpacked. It has two texts of maxDifference, and names of entries.
	maxUndo = 8 * maxDifference
)

// nameCommand gives the records of an edit the ID of the command.
func (e *edit) nameCommand(ctx context.Context) error {
	if e.kept != nil {
		return e.keep(ctx)
	}
	r, named := e.record, 0
	e.command = ""
	for _, edit := range r.Edits {
		if edit.ID != "" { // else it is of the command itself
			e.command = edit.ID
			named++
		}
	}
	if named > 1 {
		e.command = newID()
	}
	for i := range r.Edits {
		r.Edits[i].CommandID = e.command
	}
	return nil
}

// keptEdits are the changes of a command with many entries, packed.
type keptEdits struct {
	packed bytes.Buffer
	zip    *zstd.Encoder
	to     *json.Encoder

	undoes string // the ID of the command that this one undoes
}

func (k *keptEdits) add(edit listedit.Edit) (err error) {
	if k.zip == nil {
		if k.zip, err = zstd.NewWriter(&k.packed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
			return err
		}
		k.to = json.NewEncoder(k.zip)
	}
	return k.to.Encode(edit)
}

// changeOrKeep adds the change of an entry to the record or, if there are many, to the file beside
// the log. It returns the ID of the change, if it has one.
func (e *edit) changeOrKeep(x listfile.Entry, edit listedit.Edit) (id string, err error) {
	if e.kept != nil {
		info := e.info(x)
		return "", e.kept.add(listedit.Edit{Entry: info.Entry, For: info.For, Before: edit.Before, After: edit.After})
	}
	id = e.change(x, edit.Words, edit.Before, edit.After)
	e.record.Edits[len(e.record.Edits)-1].Undoes = edit.Undoes
	return id, nil
}

// keep stores the changes of a command for Undo, and removes what nobody can ask for any more.
func (e *edit) keep(ctx context.Context) error {
	tree := atomicfile.In(e.config().State.Dir)
	if err := tree.MakeDirs(undoDir); err != nil {
		return err
	}
	e.dropUndo(ctx, tree)
	if err := e.kept.zip.Close(); err != nil {
		return err
	}
	e.command = newID()
	e.record.Edits, e.record.Edit = nil, listedit.Edit{ID: e.command, CommandID: e.command, Undoes: e.kept.undoes}
	return tree.WriteFile(path.Join(undoDir, e.command+undoSuffix), undoDir, newPattern, e.kept.packed.Bytes())
}

// dropUndo removes old files of commands that the audit log does not have any more. One that cannot
// be removed does no harm.
func (e *edit) dropUndo(ctx context.Context, tree atomicfile.Tree) {
	files, _ := tree.ReadDir(undoDir)
	for _, f := range files {
		info, err := f.Info()
		if err != nil || time.Since(info.ModTime()) < keepUndo {
			continue
		}
		id, ok := strings.CutSuffix(f.Name(), undoSuffix)
		if _, err := e.Change(ctx, id); !ok || errors.Is(err, ErrNoChange) {
			_ = tree.Remove(path.Join(undoDir, f.Name()))
		}
	}
}

// undoChunk is how many changes are undone at a time: each time the list is read.
const undoChunk = 50_000

// eachKept calls do with the changes that keep has stored, undoChunk at a time.
func (e *Editor) eachKept(id string, do func([]listedit.Edit) error) error {
	tree := atomicfile.In(e.config().State.Dir)
	packed, err := tree.ReadFile(path.Join(undoDir, id+undoSuffix), maxUndo)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("change %s: %w: what it changed is not stored on this gate; spamgate lists rollback puts a version back", id, ErrNoChange)
	}
	if err != nil {
		return err
	}
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUndo))
	if err != nil {
		return err
	}
	defer z.Close()
	var edits []listedit.Edit
	from := json.NewDecoder(z)
	for err == nil {
		var edit listedit.Edit
		if err = from.Decode(&edit); err == nil {
			edits = append(edits, edit)
		} else if err != io.EOF {
			return fmt.Errorf("change %s: reading what it changed: %w", id, err)
		}
		if len(edits) > 0 && (err != nil || len(edits) == undoChunk) {
			if err := do(edits); err != nil {
				return err
			}
			edits = edits[:0]
		}
	}
	return nil
}

// command is a change of one entry, or all that a command changed.
type command struct {
	Change
	records []listedit.Record // of the entries that are not undone yet
	whole   bool              // of a command: entries that were changed since stay as they are
}

// find finds a change in the audit log by its ID, or by that of its command.
func (e *Editor) find(ctx context.Context, id string) (*command, error) {
	none := fmt.Errorf("change %q: %w", id, ErrNoChange)
	if !isID(id) {
		return nil, none
	}
	var c *command
	undone := map[string]*Undone{}
	entries, last := 0, (*Undone)(nil)
	_, err := e.log().Newest(ctx, listedit.Search{
		Line: func(line []byte) bool { // the records of a command are beside each other
			return c != nil || bytes.Contains(line, []byte(id)) || bytes.Contains(line, []byte(`"undoes":"`))
		},
		Found: func(r listedit.Record) bool {
			note(undone, &r)
			if r.ID != id && r.CommandID != id || r.Command == listedit.Failed {
				return c == nil
			}
			change := newChange(r, undone)
			if c == nil || r.Entry == "" {
				was := c
				c = &command{Change: *change, whole: r.ID != id || r.Entry == ""}
				if was != nil {
					c.records = was.records
				}
			}
			if r.Entry != "" {
				entries, last = entries+1, change.Undone
				if last == nil {
					c.records = append(c.records, r)
				}
			}
			return r.ID != id
		},
	})
	if err == nil && c == nil {
		if err = none; e.config().Fleet.On() {
			err = fmt.Errorf("%w on this gate: undo works on the gate of the fleet where the change was made", err)
		}
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(c.records)
	if c.whole {
		if c.Entry != "" { // the records of all entries, and none of the command itself
			c.What += more(entries - 1)
			c.Undone = undone[id]
		}
		if entries > 0 && len(c.records) == 0 && c.Undone == nil {
			c.Undone = last
		}
		c.ID, c.Entry, c.For, c.Before, c.After = id, "", "", nil, nil
	}
	return c, nil
}

// more says that a text is about further changes.
func more(n int) string {
	if n < 1 {
		return ""
	}
	return ", and " + text.Count(n, "more change", "more changes")
}

// each calls do with what is to be undone.
func (c *command) each(e *Editor, do func([]listedit.Edit) error) error {
	if c.kept() {
		return e.eachKept(c.ID, do)
	}
	edits := make([]listedit.Edit, len(c.records))
	for i, r := range c.records {
		edits[i] = r.Edit
		edits[i].Words = r.What
	}
	return do(edits)
}

// kept reports whether a file has the changes of the entries.
func (c *command) kept() bool { return c.whole && c.records == nil }

// name returns what undoes a record: its ID, or that of its command.
func name(r *listedit.Record) string { return cmp.Or(r.ID, r.CommandID) }
