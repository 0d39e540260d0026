// Package managed edits the lists that the gate keeps in its state directory: in the gate,
// for the console, the API and the admin socket; and in commands while no gate runs.
//
// Each change of an entry is a record in the audit log, with the entry's lines before and
// after it, and so can be undone. Edits of several processes wait for each other
// (package listedit), and none is lost.
package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
)

// Why an edit is refused. Use errors.Is.
var (
	ErrNoList     = errors.New("there is no such list")
	ErrNotManaged = errors.New("the list is not managed by the gate")
	ErrEntry      = errors.New("invalid entry")
	ErrProtected  = errors.New("the entry covers a protected domain")
	ErrCancelled  = errors.New("an exception in the list cancels the entry")
	ErrNotListed  = errors.New("the entry is not in the list")
	ErrTooLarge   = listedit.ErrTooLarge
	ErrMissing    = errors.New("the file of the list is missing")

	ErrNoFleet  = errors.New("the list belongs to the fleet, and only a running gate can change it there: start this gate, or change the list on another one")
	ErrConflict = errors.New("the list has changed since")
	ErrNoChange = errors.New("no such change is recorded")
	ErrUndone   = errors.New("the change is undone already")
	ErrCursor   = errors.New("not a place among the changes: begin with the newest ones")
)

// Editor edits the managed lists of a configuration. Several goroutines may use it at once.
type Editor struct {
	config func() *config.Config
	store  *store.Store
	fleet  Fleet // nil: this process is in none
}

// New returns an Editor of the lists in the configuration that config returns. The store
// makes edits live before a call returns; nil: no gate runs, and its next start reads them.
func New(config func() *config.Config, s *store.Store) *Editor {
	return &Editor{config: config, store: s}
}

// Options say how an edit is made.
type Options struct {
	DryRun bool   `json:"dry_run,omitempty"` // check everything, and change nothing
	Why    string `json:"why,omitempty"`     // for the audit log

	// Command is what the audit log calls the edit; empty: "add", "remove", "undo" ...
	Command string `json:"command,omitempty"`
}

// Result is the result of an edit.
type Result struct {
	List    string    `json:"list"`
	DryRun  bool      `json:"dry_run,omitempty"`
	Changed bool      `json:"changed"` // with DryRun: it would be
	Entries []Outcome `json:"entries,omitempty"`

	// Change names all that was changed, for Undo.
	Change string `json:"change,omitempty"`

	// Of the Undo of a command: how many entries are again as they were before, and how many stay
	// as they are, with the reason in Why. Entries has the latter, and the first ones of the others.
	Undone int `json:"undone,omitempty"`
	Stay   int `json:"stay,omitempty"`

	Live
}

// Live says whether an edit counts.
type Live struct {
	// Generation is that of the lists with which the edit is live; 0 if it is not, or if
	// no gate runs.
	Generation uint64 `json:"generation,omitempty"`

	// NotLive says why the list is changed and the change does not count. Pinned: for no
	// other reason than that the list is pinned.
	NotLive string `json:"not_live,omitempty"`
	Pinned  bool   `json:"pinned,omitempty"`
}

// Outcome says what was done with one entry.
type Outcome struct {
	listfiles.EntryInfo // as the list has it now; if it was removed, as the list had it

	What   string `json:"what"`             // listedit.Added and the like, or Removed
	Change string `json:"change,omitempty"` // names the change for Undo

	// Was is the line that was updated, and Repeated counts further lines of the entry,
	// which were removed.
	Was      *listfiles.EntryInfo `json:"was,omitempty"`
	Repeated int                  `json:"repeated,omitempty"`

	Opposite *listfiles.EntryInfo  `json:"opposite,omitempty"` // of an exception: the entry that it cancels
	Covered  []listfiles.EntryInfo `json:"covered,omitempty"`  // entries of the list that match all that this one matches
	Removed  []listfiles.EntryInfo `json:"removed,omitempty"`  // all lines that were removed
	Now      []string              `json:"now,omitempty"`      // after Undo: the entry's lines
	Why      string                `json:"why,omitempty"`      // why Undo lets it stay
}

// What Remove and Undo did with an entry, beside the words of package listedit.
const (
	Removed = "removed"
	Undid   = "undone"
	Stays   = "stays"
)

// Lists returns the managed lists.
func (e *Editor) Lists() (lists []config.List) {
	for _, l := range e.config().Lists {
		if l.Managed {
			lists = append(lists, l)
		}
	}
	return lists
}

// Default returns the managed list of a type to which entries go if no list is named.
func (e *Editor) Default(kind string, perRecipient bool) (config.List, bool) {
	for _, l := range e.Lists() {
		if l.Default && l.Type == kind && l.PerRecipient == perRecipient {
			return l, true
		}
	}
	return config.List{}, false
}

// list returns a managed list.
func (e *Editor) list(name string) (*listfiles.List, error) {
	c := e.config()
	i := setup.ListIndex(c, name)
	if i < 0 {
		return nil, fmt.Errorf("list %q: %w; there is %s", name, ErrNoList, strings.Join(setup.ListNames(c.Lists), ", "))
	}
	if l := c.Lists[i]; !l.Managed {
		return nil, fmt.Errorf("list %s: %w (managed = true)", name, ErrNotManaged)
	}
	l, err := listfiles.New(c.Lists[i])
	if err == nil && len(l.Paths) == 0 {
		if err = Make(c); err == nil {
			l.Paths = []string{l.Copy}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w; spamgate lists rollback %s puts its last version back", ErrMissing, err, name)
	}
	return l, err
}

// Open opens the file of a managed list.
func (e *Editor) Open(list string) (io.ReadSeekCloser, error) {
	l, err := e.list(list)
	if err != nil {
		return nil, err
	}
	return setup.Opener(l.List).Open(l.Copy)
}

// edit is one change of a list.
type edit struct {
	*Editor
	list    *listfiles.List
	options Options
	record  *listedit.Record
	whole   bool // the whole content is wanted as it is, and the file is made if it is missing

	accepted bool // accept has accepted the new content

	kept    *keptEdits // the changes, if they are too many for records of their own
	command string     // the ID of all that is changed
}

func (e *Editor) edit(by By, l *listfiles.List, command string, o Options) *edit {
	return &edit{Editor: e, list: l, options: o, record: by.Record(cmp.Or(o.Command, command), l.Name, l.Copy, o.Why)}
}

// do replaces the list's content by what change writes, and makes it live.
func (e *edit) do(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (Result, error) {
	r := Result{List: e.list.Name, DryRun: e.options.DryRun}
	done, err := e.replaceFile(ctx, change, listedit.Options{
		DryRun:   e.options.DryRun,
		StateDir: e.list.StateDir(),
		Create:   e.whole,
		MaxBytes: maxBytes(e.list),
		Before: func(c listedit.Change) error {
			if err := e.accept(c); err != nil {
				return err
			}
			return e.nameCommand(ctx)
		},
		Log:         e.log(),
		Record:      e.record,
		RecordFirst: true,
	})
	r.Changed = done.Changed
	if err != nil {
		return r, fmt.Errorf("list %s: %w", e.list.Name, err)
	}
	if r.Changed && !r.DryRun {
		r.Change = e.command
		r.Live = e.live(context.WithoutCancel(ctx), e.list.Name)
	}
	return r, nil
}

// maxBytes returns the size of the largest file that the gate reads of a list.
func maxBytes(l *listfiles.List) int64 { return cmp.Or(l.MaxBytes, store.DefaultMaxBytes) }

func (e *Editor) log() *listedit.Log { return &listedit.Log{Dir: e.config().State.Dir} }

// accept accepts the new content in advance, so that it is not held for its size. A change of a
// list that is held is not accepted: the rest of what is on disk was not asked for.
func (e *edit) accept(change listedit.Change) error {
	if held := e.held(); held != nil && !e.whole {
		info, err := setup.Opener(e.list.List).Stat(e.list.Copy)
		if err == nil && info.Size() == 0 {
			return fmt.Errorf("it is empty, and the list had entries before; spamgate lists rollback %s puts them back", e.list.Name)
		}
		return nil
	}
	sum, err := setup.Opener(e.list.List).ContentSumWith(e.list.Paths, e.list.Copy, change.SHA256)
	if err != nil {
		return err
	}
	e.accepted = true
	if e.store != nil {
		return e.store.AcceptContent(e.list.Name, sum)
	}
	lists, err := setup.BlocklistConfig(e.config(), nil)
	if err != nil {
		return err
	}
	return store.AcceptContent(lists, e.list.Name, sum)
}

// held returns why the gate holds the list; nil if it does not, or is not running.
func (e *edit) held() error {
	if l, ok := e.stats(e.list.Name); ok && l.Held && !errors.Is(l.Err, store.ErrPinned) {
		return l.Err
	}
	return nil
}

// stats returns the state of a list in the running gate.
func (e *Editor) stats(list string) (l blocklist.ListStats, ok bool) {
	if e.store == nil {
		return l, false
	}
	for _, l := range e.store.Set().Stats().Lists {
		if l.Name == list {
			return l, true
		}
	}
	return l, false
}

// maxRescan bounds the wait for an edit to be live. After that it becomes so in the background.
const maxRescan = 5 * time.Minute

// live makes the content of a list live.
func (e *Editor) live(ctx context.Context, list string) Live {
	if e.store == nil {
		return Live{}
	}
	ctx, cancel := context.WithTimeout(ctx, maxRescan)
	defer cancel()
	err := e.store.Rescan(ctx)
	generation := e.store.Set().Generation()
	l, ok := e.stats(list)
	switch {
	case !ok:
		return Live{NotLive: "the running gate does not have the list yet: reload it"}
	case l.Err != nil:
		return Live{NotLive: l.Err.Error(), Pinned: errors.Is(l.Err, store.ErrPinned)}
	case err != nil && (ctx.Err() != nil || errors.Is(err, store.ErrClosed)): // else it is about another list
		return Live{NotLive: "the gate reads it later: " + err.Error()}
	}
	return Live{Generation: generation}
}

// Make makes the missing files of managed lists that never served a version: they begin
// empty.
func Make(c *config.Config) error {
	tree := atomicfile.In(c.State.Dir)
	for _, l := range c.Lists {
		if !l.Managed {
			continue
		}
		name, _ := tree.Name(l.Copy)
		if _, err := tree.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			continue // what is wrong with the file shows when it is read
		}
		served, err := store.HasServed(c.State.Dir, l.Name)
		if err == nil && !served {
			err = makeFile(tree, name, l)
		}
		if err != nil {
			return fmt.Errorf("making the file of the managed list %s: %w", l.Name, err)
		}
	}
	return nil
}

func makeFile(tree atomicfile.Tree, name string, l config.List) error {
	if err := tree.MakeDirs(Dir); err != nil {
		return err
	}
	text := fmt.Sprintf("# The list %s, which spamgate keeps. It is edited with \"spamgate lists add\" and the\n"+
		"# like, or in the console; not by hand.\n", l.Name)
	return tree.WriteNew(name, Dir, newPattern, []byte(text))
}

// Dir is the directory in the state directory that has the files of managed lists.
const Dir = "managed"

// newPattern names files before they are in their places.
const newPattern = ".new-*"
