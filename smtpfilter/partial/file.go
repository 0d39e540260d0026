package partial

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/durable"
)

const (
	// newPrefix begins the name of the file while it is written anew.
	newPrefix = ".partial-"

	// staleAfter is the age from which such a file is one that a killed process
	// has left.
	staleAfter = time.Hour

	// firstLine says what the file is. It is no entry, and is passed over.
	firstLine = "# spamgate: who has which message; see package smtpfilter/partial\n"

	// slack is how many lines the file may have besides two for each entry.
	slack = 1024

	// defaultLockWait is how long to wait for another process that is writing. Once
	// it was in vain, nobody waits for lockPause: the other one may have been stopped.
	defaultLockWait = 2 * time.Second
	lockPause       = 30 * time.Second
)

// file is the Store's file on disk.
type file struct {
	path     string
	lockWait time.Duration
	mu       sync.Mutex // held by who reads or writes

	f     *os.File    // open, or nil
	info  fs.FileInfo // of f
	whole bool        // all of f is still to be read, and replaces what is known
	read  int64       // up to here it was read
	lines int         // so many lines

	behind bool      // what is in memory could not be written
	gaveUp time.Time // when waiting for the lock was in vain

	seen atomic.Pointer[seenFile] // nil: there was none
}

// seenFile is a file as it was when it was read or written last.
type seenFile struct {
	info fs.FileInfo
	size int64
}

// changed reports whether another process has written to the file, or has replaced
// it. It waits for nobody.
func (d *file) changed() bool {
	seen := d.seen.Load()
	now, err := os.Lstat(d.path)
	if err != nil {
		return false // what is known is all there is
	}
	return seen == nil || !os.SameFile(now, seen.info) || now.Size() != seen.size
}

// note keeps what the file is like now.
func (d *file) note(size int64) { d.seen.Store(&seenFile{d.info, size}) }

// isCurrent reports whether the open file is the one at the path.
func (d *file) isCurrent() bool {
	if d.f == nil {
		return false
	}
	now, err := os.Lstat(d.path)
	return err == nil && os.SameFile(now, d.info)
}

// open opens the file at the path, which is made if that is wanted. Where there is
// none, the error is fs.ErrNotExist.
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
	d.f, d.whole, d.read, d.lines = f, true, 0, 0
	return nil
}

// close closes the file. Nothing was left to write, so that it cannot fail in a way
// that matters.
func (d *file) close() {
	if d.f != nil {
		_ = d.f.Close()
		d.f = nil
	}
}

// lock opens the file that is to be written to, and keeps other processes out until
// unlock.
func (d *file) lock() (unlock func(), err error) {
	late := time.Now()
	if late.Sub(d.gaveUp) > lockPause {
		late = late.Add(d.lockWait)
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
			if time.Now().After(late) {
				d.gaveUp = time.Now()
				return nil, fmt.Errorf("%s: another process has it locked", d.path)
			}
			time.Sleep(5 * time.Millisecond)
		case err != nil:
			return nil, &fs.PathError{Op: "lock", Path: d.path, Err: err}
		case d.isCurrent():
			return func() { unlockFile(f) }, nil
		default:
			unlockFile(f) // it was replaced meanwhile
		}
	}
}

// isEmpty reports whether the file was just made: rewrite leaves a line at least.
func (d *file) isEmpty() bool {
	seen := d.seen.Load()
	return seen == nil || seen.size == 0
}

// refresh reads what another process has written.
func (s *Store) refresh() {
	if !s.file.changed() {
		return
	}
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	if err := s.catchUp(); err != nil {
		s.options.Logger.Debug("who has which message cannot be read", "error", err)
	}
}

// catchUp reads what is new in the file. The caller holds file.mu.
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
		return fmt.Errorf("%s: %d bytes are more than the gate writes; remove the file", d.path, size)
	}
	if size < d.read {
		d.whole, d.read, d.lines = true, 0, 0
	}
	if err := s.readLines(size); err != nil {
		return err
	}
	d.note(size)
	return nil
}

// readLines takes the lines up to size in. A last line without an end is left for
// later: another process may be writing it.
func (s *Store) readLines(size int64) error {
	d := &s.file
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.whole {
		for e := range s.index.entries() {
			e.seen = false
		}
	}
	now := s.options.now()
	in := bufio.NewReaderSize(io.NewSectionReader(d.f, d.read, size-d.read), 1<<16)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			d.read += int64(len(line)) // of no line of ours
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
			s.index.apply(p, e, min(since, now.Unix())) // a clock may have been wrong
			s.prune(now)
		}
	}
	if d.whole && size > 0 {
		s.index.dropUnseen()
	}
	d.whole = false
	return nil
}

// begin locks the file and reads what is new in it. The caller holds file.mu.
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

// append adds lines to the file, after begin. Synced, they survive a loss of power. A
// file that was just made, or that lacks lines, is written anew: with what was in the
// one before, if that was removed.
func (s *Store) append(lines []byte, synced bool) error {
	d := &s.file
	if d.behind || d.isEmpty() {
		return s.rewrite()
	}
	if len(lines) == 0 {
		return nil
	}
	if err := d.write(lines); err != nil {
		return err
	}
	if synced {
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

// write appends whole lines, or nothing. A line that was cut short by a process that
// was killed is given its end first.
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
	for _, b := range lines {
		if b == '\n' {
			d.lines++
		}
	}
	d.read = before + int64(len(lines))
	d.note(d.read)
	return nil
}

// rewrite replaces the file by one that holds the entries alone. The caller has it
// locked.
func (s *Store) rewrite() error {
	if err := s.replace(); err != nil {
		return err
	}
	s.file.behind = false
	// The new file is not locked: others may have written to it, or have replaced
	// it in turn. So it is read like one of theirs.
	return s.catchUp()
}

// replace puts a file with all entries in the place of the one that is locked, and
// lets that go.
func (s *Store) replace() error {
	d := &s.file
	f, err := durable.Create(filepath.Dir(d.path), newPrefix+"*.new", 0o600)
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

// allLines are the lines of a file with all entries, and the entries.
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
