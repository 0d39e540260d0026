package partial

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/atomicfile"
)

const (
	// newPrefix begins the name of a new file that will replace the file.
	newPrefix = ".partial-"

	// staleAfter is the age after which a killed process has left such a file.
	staleAfter = time.Hour

	// firstLine says what the file is. It is not an entry, and readers skip it.
	firstLine = "# spamgate: who has which message; see package smtpfilter/partial\n"

	// slack is how many lines the file may have in addition to two per entry.
	slack = 1024

	// defaultLockWait is how long to wait for another process that is writing. After
	// a wait without success, nobody waits for lockPause: the other process may be
	// stopped.
	defaultLockWait = 2 * time.Second
	lockPause       = 30 * time.Second
)

// file is the Store's file on disk.
type file struct {
	path     string
	lockWait time.Duration
	mu       sync.Mutex // held to read or write

	f      *os.File    // nil if it is not open
	info   fs.FileInfo // of f
	unread bool        // f is new: its entries will replace those in memory
	read   int64       // bytes that were read
	lines  int         // lines that were read

	incomplete   bool      // entries in memory could not be written
	lockTimedOut time.Time // when a wait for the lock last ended without it

	last atomic.Pointer[fileState] // when it was read or written last; nil: there was none
}

// fileState is the state of a file at some time.
type fileState struct {
	info fs.FileInfo
	size int64
}

// changed reports whether another process has written to the file or replaced it. It
// does not wait for a lock.
func (d *file) changed() bool {
	last := d.last.Load()
	info, err := os.Lstat(d.path)
	return err == nil && (last == nil || !os.SameFile(info, last.info) || info.Size() != last.size)
}

// setLast stores the file's present state.
func (d *file) setLast(size int64) { d.last.Store(&fileState{d.info, size}) }

// isCurrent reports whether the open file is the one at the path.
func (d *file) isCurrent() bool {
	if d.f == nil {
		return false
	}
	info, err := os.Lstat(d.path)
	return err == nil && os.SameFile(info, d.info)
}

// open opens the file at the path, or creates it if create is set. Otherwise the error
// for a missing file is fs.ErrNotExist.
func (d *file) open(create bool) error {
	d.close()
	f, err := openRegular(d.path, create)
	if err != nil {
		return err
	}
	if d.info, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	d.f, d.unread, d.read, d.lines = f, true, 0, 0
	return nil
}

// close closes the file. It ignores an error, since nothing is left to write.
func (d *file) close() {
	if d.f != nil {
		_ = d.f.Close()
		d.f = nil
	}
}

// lock opens and locks the file. Other processes cannot write to it until unlock.
func (d *file) lock() (unlock func(), err error) {
	deadline := time.Now()
	if deadline.Sub(d.lockTimedOut) > lockPause {
		deadline = deadline.Add(d.lockWait)
	}
	for {
		if !d.isCurrent() {
			if err := d.open(true); err != nil {
				return nil, err
			}
		}
		f := d.f
		switch err := tryLock(f); {
		case errors.Is(err, errLocked):
			if time.Now().After(deadline) {
				d.lockTimedOut = time.Now()
				return nil, fmt.Errorf("%s: another process has it locked", d.path)
			}
			time.Sleep(5 * time.Millisecond)
		case err != nil:
			return nil, &fs.PathError{Op: "lock", Path: d.path, Err: err}
		case d.isCurrent():
			return func() { unlockFile(f) }, nil
		default:
			unlockFile(f) // another process has replaced it
		}
	}
}

// isEmpty reports whether the file was just created. After rewrite it has a line.
func (d *file) isEmpty() bool {
	last := d.last.Load()
	return last == nil || last.size == 0
}

// refresh reads what other processes have written.
func (s *Store) refresh() {
	if !s.file.changed() {
		return
	}
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	if err := s.catchUp(); err != nil {
		s.options.Logger.Debug("LMTP memory cannot be read", "error", err)
	}
}

// catchUp reads what is new in the file. The caller must hold file.mu.
func (s *Store) catchUp() error {
	d := &s.file
	if !d.isCurrent() {
		if err := d.open(false); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
	}
	info, err := d.f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if limit := int64(2*s.options.MaxEntries+2*slack) * maxLine; size > limit {
		return fmt.Errorf("%s: %d bytes is more than this program writes; remove the file", d.path, size)
	}
	if size < d.read {
		d.unread, d.read, d.lines = true, 0, 0
	}
	if err := s.readLines(size); err != nil {
		return err
	}
	d.setLast(size)
	return nil
}

// readLines reads the lines up to size. It leaves a last line without a line end for
// later: another process may be writing it.
func (s *Store) readLines(size int64) error {
	d := &s.file
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.unread {
		for e := range s.index.entries() {
			e.inFile = false
		}
	}
	now := s.options.now()
	in := bufio.NewReaderSize(io.NewSectionReader(d.f, d.read, size-d.read), 1<<16)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			d.read += int64(len(line)) // too long for an entry
			continue
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		d.read += int64(len(line))
		d.lines++
		if p, e, since, ok := parseLine(line[:len(line)-1]); ok {
			s.index.apply(p, e, min(since, now.Unix())) // the clock may have been wrong
			s.prune(now)
		}
	}
	if d.unread && size > 0 {
		s.index.removeMissing()
	}
	d.unread = false
	return nil
}

// begin locks the file and reads what is new in it. The caller must hold file.mu.
func (s *Store) begin() (unlock func(), err error) {
	if unlock, err = s.file.lock(); err != nil {
		return nil, err
	}
	if err := s.catchUp(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// append appends lines to the file, after begin. If sync is set, they survive a loss of
// power. It rewrites a file that is empty or incomplete, so a file that was removed is
// restored from memory.
func (s *Store) append(lines []byte, sync bool) error {
	d := &s.file
	if d.incomplete || d.isEmpty() {
		return s.rewrite()
	}
	if len(lines) == 0 {
		return nil
	}
	if err := d.write(lines); err != nil {
		return err
	}
	if sync {
		if err := d.f.Sync(); err != nil {
			return err
		}
	}
	if d.lines > 2*s.Len()+slack {
		if err := s.rewrite(); err != nil {
			s.options.Logger.Warn("LMTP memory file cannot be replaced and keeps growing", "error", err)
		}
	}
	return nil
}

// write appends whole lines, or nothing. It first ends a line that a killed process has
// cut short.
func (d *file) write(lines []byte) error {
	info, err := d.f.Stat()
	if err != nil {
		return err
	}
	before := info.Size()
	if d.read < before {
		lines = append([]byte("\n"), lines...)
	}
	if _, err := d.f.Write(lines); err != nil {
		return errors.Join(err, d.f.Truncate(before))
	}
	d.lines += bytes.Count(lines, []byte("\n"))
	d.read = before + int64(len(lines))
	d.setLast(d.read)
	return nil
}

// rewrite replaces the file by one with the present entries only. The caller holds the
// lock.
func (s *Store) rewrite() error {
	if err := s.replace(); err != nil {
		return err
	}
	s.file.incomplete = false
	// The new file is not locked: other processes may have written to it or replaced
	// it. So it is read like one of theirs.
	return s.catchUp()
}

// replace replaces the locked file by one with all entries, and closes the old one.
func (s *Store) replace() error {
	d := &s.file
	f, err := atomicfile.Create(filepath.Dir(d.path), newPrefix+"*.new", 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	lines, entries := s.allLines()
	if _, err := f.Write(lines); err != nil {
		return err
	}
	if err := errors.Join(f.GiveAway(), f.Commit(d.path)); err != nil {
		return err
	}
	s.mu.Lock()
	for _, e := range entries {
		e.saved = true
	}
	s.mu.Unlock()
	d.close()
	return nil
}

// allLines returns the lines of a file with all entries, and the entries.
func (s *Store) allLines() (lines []byte, entries []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines = []byte(firstLine)
	for e := range s.index.entries() {
		lines = appendLine(lines, e.pair, e.Entry, e.since)
		entries = append(entries, e)
	}
	return lines, entries
}
