package decisions

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"spamgate/internal/sqlite"
)

// Reader reads the history, beside the processes that write it. It is safe for concurrent use.
type Reader struct {
	folder folder

	mu     sync.Mutex
	idle   map[string][]*readFile // open files by name
	kept   int                    // in idle
	timer  *time.Timer            // closes them
	closed bool
	first  map[string]int64 // the time of the oldest row, of files that have one
}

// So many files stay open between queries, and for so long: until it is closed a removed file takes
// its space.
const (
	idleFiles = 48
	idleTime  = time.Minute
)

// NewReader returns a Reader of a directory. A missing one is an empty history.
func NewReader(dir string) *Reader {
	return &Reader{folder: newFolder(dir), idle: map[string][]*readFile{}, first: map[string]int64{}}
}

// Close closes the files. Queries that run are not disturbed.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.closeIdle(func(string) bool { return false })
}

// closeIdle closes the idle files that are not wanted. The caller has locked mu.
func (r *Reader) closeIdle(wanted func(name string) bool) {
	for name, files := range r.idle {
		if !wanted(name) {
			for _, f := range files {
				f.close()
			}
			r.kept -= len(files)
			delete(r.idle, name)
		}
	}
}

// files returns the files of the history, and closes idle ones that are gone.
func (r *Reader) files() ([]file, error) {
	all, err := r.folder.files()
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, f := range all {
		there[f.name()] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeIdle(func(name string) bool { return there[name] })
	maps.DeleteFunc(r.first, func(name string, _ int64) bool { return !there[name] })
	return all, nil
}

// readFile is a database file that a query reads.
type readFile struct {
	file
	info os.FileInfo // of the file as it was opened
	db   *sqlite.DB
	seed uint64

	statements map[string]*sqlite.Stmt
}

// Statements on a database file.
const (
	selectLast    = "SELECT max(n), (SELECT skew FROM settings) FROM decisions"
	selectFirst   = "SELECT at FROM decisions ORDER BY n LIMIT 1"
	selectAt      = "SELECT at FROM decisions WHERE n = ?"
	selectBucket  = "SELECT postings FROM postings WHERE bucket = ?"
	selectBuckets = "SELECT postings FROM postings WHERE bucket BETWEEN ? AND ?"
	selectCounted = "SELECT n FROM decisions WHERE count IS NOT NULL AND n BETWEEN ? AND ?"
	selectBlocks  = "SELECT first, count, buckets, base, NULL FROM blocks WHERE first + count > ? AND first <= ? ORDER BY first"
	selectRecent  = "SELECT first, count, 0, 0, postings FROM recent WHERE first + count > ? AND first <= ? ORDER BY first"
)

// statement returns a prepared statement with the given parameters. Its caller resets it.
func (f *readFile) statement(sql string, parameters ...int64) (*sqlite.Stmt, error) {
	s := f.statements[sql]
	if s == nil {
		var err error
		if s, err = f.db.Prepare(sql); err != nil {
			return nil, err
		}
		f.statements[sql] = s
	}
	for i, p := range parameters {
		s.BindInt(i+1, p)
	}
	return s, nil
}

// int returns the first column of the only row of a statement, and whether there is a row.
func (f *readFile) int(sql string, parameters ...int64) (int64, bool, error) {
	s, err := f.statement(sql, parameters...)
	if err != nil {
		return 0, false, err
	}
	defer s.Reset()
	found, err := s.Step()
	if err != nil || !found {
		return 0, false, err
	}
	return s.Int(0), true, nil
}

// errSkip says that a file has nothing to read: it is gone, empty, or of a newer version.
var errSkip = errors.New("nothing to read")

// open opens a file, or takes an idle one, and begins a transaction.
func (r *Reader) open(file file) (*readFile, error) {
	name := file.name()
	info, err := r.folder.check(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errSkip
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	var f *readFile
	if files := r.idle[name]; len(files) > 0 {
		f = files[len(files)-1]
		r.idle[name] = files[:len(files)-1]
		r.kept--
	}
	r.mu.Unlock()
	if f != nil && !os.SameFile(f.info, info) {
		f.close()
		f = nil
	}
	if f == nil {
		if f, err = r.openFile(file, info); err != nil {
			return nil, err
		}
	}
	if err := f.db.Exec("BEGIN"); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (r *Reader) openFile(file file, info os.FileInfo) (_ *readFile, err error) {
	f := &readFile{file: file, info: info, statements: map[string]*sqlite.Stmt{}}
	if f.db, err = sqlite.Open(r.folder.path(file.name()), true); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.close()
			err = otherSchema(err) // these statements fit every history, unless the file's head is damaged
		}
	}()
	f.db.BusyTimeout(int(writeTimeout.Milliseconds()))
	if err := f.db.Exec("PRAGMA query_only = 1; PRAGMA cache_size = -512"); err != nil {
		return nil, err
	}
	if v, err := f.db.Int("PRAGMA user_version"); err != nil {
		return nil, err
	} else if v != version {
		return nil, errSkip
	}
	seed, err := f.db.Int("SELECT seed FROM settings")
	if err != nil {
		return nil, err
	}
	f.seed = uint64(seed)
	return f, nil
}

// release ends the transaction of a file, and keeps it for other queries.
func (r *Reader) release(f *readFile) {
	for _, s := range f.statements {
		s.Reset()
	}
	err := f.db.Exec("COMMIT")
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.closed || r.kept >= idleFiles {
		f.close()
		return
	}
	name := f.name()
	r.idle[name] = append(r.idle[name], f)
	r.kept++
	if r.timer == nil {
		r.timer = time.AfterFunc(idleTime, r.rest)
	} else {
		r.timer.Reset(idleTime)
	}
}

// rest closes all idle files.
func (r *Reader) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeIdle(func(string) bool { return false })
}

func (f *readFile) close() {
	for _, s := range f.statements {
		s.Close()
	}
	f.db.Close()
}

// get reads a row.
func (f *readFile) get(n int64) (d Decision, err error) {
	s, err := f.statement(selectRow, n)
	if err != nil {
		return Decision{}, err
	}
	defer s.Reset()
	found, err := s.Step()
	if err != nil {
		return Decision{}, err
	}
	if !found {
		return Decision{}, errMissing
	}
	return scan(s), nil
}

var errMissing = errors.New("a row of the history is missing")
