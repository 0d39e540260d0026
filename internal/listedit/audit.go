package listedit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"time"

	"spamgate/internal/durable"
)

// LogName is the name of the audit log in the state directory.
const LogName = "audit.log"

// Log is the audit log of a state directory: a JSON object a line for each
// change.
type Log struct{ Dir string }

// Record is one line of the log.
type Record struct {
	Time time.Time `json:"time"`

	// UID and User are whose process made the change, SudoUser who became that
	// user with sudo.
	UID      int    `json:"uid"`
	User     string `json:"user,omitempty"`
	SudoUser string `json:"sudo_user,omitempty"`

	Command string `json:"command"` // "add", "remove" ...
	List    string `json:"list,omitempty"`
	File    string `json:"file,omitempty"`
	What    string `json:"what"`
	Why     string `json:"why,omitempty"`
}

// NewRecord makes a record of what this process does now.
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

// Append writes a line.
func (l *Log) Append(r *Record) error {
	log, err := l.open()
	if err != nil {
		return err
	}
	defer log.close()
	return log.append(r)
}

// Check says whether a line could be written.
func (l *Log) Check() error {
	log, err := l.open()
	if err == nil {
		log.close()
	}
	return err
}

// openLog is the log's file, open to append to.
type openLog struct{ file *os.File }

// open opens the log, and makes it and its directory if they are missing: if root
// makes the state directory, a gate that runs as another user must still have the
// use of it.
func (l *Log) open() (*openLog, error) {
	file, err := l.openFile()
	if errors.Is(err, fs.ErrNotExist) {
		if err = durable.In(l.Dir).Make(); err == nil {
			file, err = l.openFile()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &openLog{file}, nil
}

// openFile opens the file. A new one is that of the directory's owner, so that
// the gate's user, too, can append to what root began. The directory is the gate's
// user's, and root may write here: so no link is followed (see [durable.Tree]).
func (l *Log) openFile() (*os.File, error) { return durable.In(l.Dir).Append(LogName) }

// append writes a line in one write, which does not mix with that of another
// process.
func (l *openLog) append(r *Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	n, err := l.file.Write(append(line, '\n'))
	if err == nil && n <= len(line) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

func (l *openLog) close() { _ = l.file.Close() }
