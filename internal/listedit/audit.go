package listedit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"time"

	"spamgate/internal/atomicfile"
)

// Failed is the command of records that take others back.
const Failed = "failed"

// LogName is the name of the audit log in the state directory.
const LogName = "audit.log"

// Log is the audit log of a state directory, with one JSON object on a line for each
// change.
type Log struct{ Dir string }

// Record is one line of the log.
type Record struct {
	Time time.Time `json:"time"`

	// UID and User are those of the process that made the change. SudoUser became
	// that user with sudo.
	UID      int    `json:"uid"`
	User     string `json:"user,omitempty"`
	SudoUser string `json:"sudo_user,omitempty"`

	Command string `json:"command"` // "add", "remove" ...
	List    string `json:"list,omitempty"`
	File    string `json:"file,omitempty"`
	What    string `json:"what"`
	Why     string `json:"why,omitempty"`

	// By is the account that made the change, and Role its role then; empty for a user
	// of this machine. Through is "console", "api" or "command".
	By      string `json:"by,omitempty"`
	Role    string `json:"role,omitempty"`
	Through string `json:"through,omitempty"`

	Edit

	// Each, if not nil, takes the place of What: a line is written for each of its
	// texts. Edits, if not nil, takes the place of both, and of Edit.
	Each  []string `json:"-"`
	Edits []Edit   `json:"-"`
}

// Edit is the change of one entry of a managed list, which can be undone.
type Edit struct {
	ID     string   `json:"id,omitempty"` // of the change; "" if it cannot be undone
	Entry  string   `json:"entry,omitempty"`
	For    string   `json:"for,omitempty"`    // the recipients for whom the entry counts
	Before []string `json:"before,omitempty"` // the entry's lines before
	After  []string `json:"after,omitempty"`  // and after
	Undoes string   `json:"undoes,omitempty"` // the ID of the change that this one undoes

	// CommandID is the ID of all that the same command changed; of one entry it is the same ID.
	CommandID string `json:"command_id,omitempty"`

	Words string `json:"-"` // the record's What
}

// NewRecord returns a record of a change that this process makes now.
func NewRecord(command, list, file string) *Record {
	r := &Record{
		Time: time.Now().UTC(), UID: os.Geteuid(), SudoUser: os.Getenv("SUDO_USER"),
		Command: command, List: list, File: file,
	}
	if u, err := user.LookupId(strconv.Itoa(r.UID)); err == nil {
		r.User = u.Username
	}
	return r
}

// Person returns who made the change: the account, the user before sudo, or else the user.
func (r *Record) Person() string {
	return cmp.Or(r.By, r.SudoUser, r.User, "uid "+strconv.Itoa(r.UID))
}

// Append writes a line.
func (l *Log) Append(r *Record) error {
	file, err := l.open()
	if err != nil {
		return err
	}
	defer file.Close() // synced
	return r.appendTo(file)
}

// Check reports whether a line could be written.
func (l *Log) Check() error {
	file, err := l.open()
	if err == nil {
		_ = file.Close() // nothing was written
	}
	return err
}

// open opens the log's file. It makes the file and its directory if they are missing.
// The directory's owner owns a new file, so that the gate's user, too, can append to
// what root began. That user may write to the directory while root writes here: so no
// link is followed (see [atomicfile.Tree]).
func (l *Log) open() (*os.File, error) {
	tree := atomicfile.In(l.Dir)
	file, err := tree.Append(LogName)
	if errors.Is(err, fs.ErrNotExist) {
		if err = tree.Make(); err == nil {
			file, err = tree.Append(LogName)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		// A new one: its name has to last as long as what is written to it.
		if err := tree.Sync("."); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("audit log: %w", err)
		}
	}
	return file, nil
}

// lines returns the lines of the log.
func (r *Record) lines() (text []byte, err error) {
	for _, record := range r.each() {
		line, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}

// each returns the records of the lines.
func (r *Record) each() (all []Record) {
	for _, e := range r.Edits {
		record := *r
		record.What, record.Edit = e.Words, e
		all = append(all, record)
	}
	if r.Edits != nil {
		return all
	}
	for _, what := range r.Each {
		record := *r
		record.What = what
		all = append(all, record)
	}
	if r.Each != nil {
		return all
	}
	return []Record{*r}
}

// notMade returns the record that takes back r, whose change was not made after all.
func (r *Record) notMade(why error) *Record {
	failed := *r
	failed.Command, failed.Why = Failed, why.Error()
	failed.Each, failed.Edits = nil, nil
	for _, record := range r.each() {
		failed.Edits = append(failed.Edits, Edit{Entry: record.Entry, For: record.For, Undoes: cmp.Or(record.ID, record.CommandID), Words: "not made: " + record.What})
	}
	return &failed
}

// appendTo writes the lines in one write, so that they do not mix with those of another
// process.
func (r *Record) appendTo(file *os.File) error {
	text, err := r.lines()
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	n, err := atomicfile.Write(file, text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = atomicfile.Sync(file)
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}
