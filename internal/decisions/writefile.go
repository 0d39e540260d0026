package decisions

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"spamgate/internal/sqlite"
)

// writeFile is a database file that this process writes to.
type writeFile struct {
	file
	folder folder
	unlock func()
	info   os.FileInfo // of the file as it was opened
	db     *sqlite.DB

	n, offset  int64 // of the last row
	seed       uint64
	skew       int64 // seconds, by which at exceeds the time of a row at most
	recent     int   // entries of the table recent, and their rows
	recentRows int

	insert, update, insertRecent *sqlite.Stmt
	postings                     []posting // scratch
	encoded                      []byte    // scratch
}

// errVersion says that a file is of a newer version.
var errVersion = errors.New("a file of a newer version")

// errSchema says that a file has other tables.
var errSchema = errors.New("not a history of decisions")

// otherSchema adds errSchema to an error of a statement that fits the tables of every history.
func otherSchema(err error) error {
	if sqlite.IsStatement(err) {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	return err
}

// writeTimeout bounds the wait for a reader that has locked a file for a moment.
const writeTimeout = 5 * time.Second

// openWrite opens a file of the given day for writing: the newest one of it that has room and that
// no other process writes to, or else a new one. It adds files that cannot be used to unusable,
// and tries those in it no more.
func (f folder) openWrite(day string, most int64, unusable map[string]error) (*writeFile, error) {
	if err := f.tree.MakeDirs(f.name); err != nil {
		return nil, err
	}
	all, err := f.files()
	if err != nil {
		return nil, err
	}
	number := int64(0)
	for _, candidate := range slices.Backward(all) {
		number = max(number, candidate.number)
		name := candidate.name()
		if candidate.day != day || unusable[name] != nil || f.size(name) >= most {
			continue
		}
		w, err := f.openWriteFile(candidate, false)
		switch {
		case err == nil:
			return w, nil
		case err == errVersion || isDamaged(err):
			unusable[name] = err
		case !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	for {
		number++
		w, err := f.openWriteFile(file{day: day, number: number}, true)
		if !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrExist) {
			return w, err
		}
	}
}

// openWriteFile opens a file for writing, or makes it.
func (f folder) openWriteFile(file file, create bool) (*writeFile, error) {
	w := &writeFile{file: file, folder: f}
	var err error
	if w.unlock, err = f.lock(file.name()); err != nil {
		return nil, err
	}
	made := false
	if create {
		made, err = f.make(file.name())
	}
	if err == nil {
		err = w.open()
	}
	if err == nil {
		return w, nil
	}
	_ = w.close() // nothing is written
	if made {
		_ = f.remove(file.name()) // else it stays, and is empty
	}
	return nil, err
}

// make makes an empty database file, whose lock the caller has, and reports whether it has.
func (f folder) make(name string) (made bool, err error) {
	if f.exists(name) {
		return false, fs.ErrExist
	}
	err = f.create(name)
	return err == nil, err
}

// open opens the database.
func (w *writeFile) open() (err error) {
	name := w.name()
	if w.info, err = w.folder.check(name); err != nil {
		return err
	}
	if w.db, err = sqlite.Open(w.folder.path(name), false); err != nil {
		return err
	}
	w.db.BusyTimeout(int(writeTimeout.Milliseconds()))
	return otherSchema(w.prepare())
}

// prepare makes or checks the schema, reads the end of the file and prepares statements.
func (w *writeFile) prepare() error {
	if err := w.db.Exec("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096; PRAGMA journal_size_limit = 8388608"); err != nil {
		return err
	}
	v, err := w.db.Int("PRAGMA user_version")
	if err == nil && v == 0 {
		err = w.db.Exec(fmt.Sprintf(schema, w.folder.seed()))
		v = version
	}
	if err == nil && v != version {
		err = errVersion
	}
	if err == nil {
		err = w.db.Exec("PRAGMA journal_mode = WAL")
	}
	if err != nil {
		return err
	}
	for _, n := range []struct {
		to  *int64
		sql string
	}{
		{&w.n, "SELECT max(n) FROM decisions"},
		{&w.offset, "SELECT at FROM decisions ORDER BY n DESC LIMIT 1"},
		{&w.skew, "SELECT skew FROM settings"},
	} {
		if *n.to, err = w.db.Int(n.sql); err != nil {
			return err
		}
	}
	w.offset = max(w.offset, w.start())
	seed, err := w.db.Int("SELECT seed FROM settings")
	if err != nil {
		return err
	}
	w.seed = uint64(seed)
	if err := w.countRecent(); err != nil {
		return err
	}
	for _, s := range []struct {
		to  **sqlite.Stmt
		sql string
	}{
		{&w.insert, insertRow},
		{&w.update, updateRow},
		{&w.insertRecent, "INSERT INTO recent VALUES (?, ?, ?)"},
	} {
		if *s.to, err = w.db.Prepare(s.sql); err != nil {
			return err
		}
	}
	return nil
}

// seed returns the seed of the newest file that has one, or a new one.
func (f folder) seed() int64 {
	all, _ := f.files()
	for _, file := range slices.Backward(all) {
		if db, err := sqlite.Open(f.path(file.name()), true); err == nil {
			seed, err := db.Int("SELECT seed FROM settings")
			db.Close()
			if err == nil {
				return seed
			}
		}
	}
	return rand.Int64()
}

func (w *writeFile) countRecent() error {
	entries, err := w.db.Int("SELECT count(*) FROM recent")
	if err != nil {
		return err
	}
	rows, err := w.db.Int("SELECT sum(count) FROM recent")
	w.recent, w.recentRows = int(entries), int(rows)
	return err
}

// blockAtEnd is the number of rows from which on a file gets a last block when it is closed: a
// search reads blocks faster than the table recent.
const blockAtEnd = 256

// finish closes a file that was written to. Whatever fails here costs time or space at most.
func (w *writeFile) finish() {
	w.db.BusyTimeout(0)
	if w.recentRows >= blockAtEnd {
		_ = w.db.Within("BEGIN IMMEDIATE", w.makeBlock)
	}
	_ = w.db.Exec("PRAGMA journal_mode = DELETE") // readers then need no files beside it
	_ = w.close()
}

// close closes the file. Its lock ends.
func (w *writeFile) close() (err error) {
	for _, s := range []*sqlite.Stmt{w.insert, w.update, w.insertRecent} {
		if s != nil {
			s.Close()
		}
	}
	if w.db != nil {
		err = w.db.Close()
	}
	w.unlock()
	return err
}

// present reports whether the file is still in its place, and nobody has truncated it.
func (w *writeFile) present() bool {
	current, err := w.folder.check(w.name())
	if err != nil || !os.SameFile(current, w.info) || current.Size() < w.info.Size() {
		return false
	}
	w.info = current
	return true
}

// merged is the new count of a row.
type merged struct {
	n     int64
	count int
	last  time.Time
}

// append writes rows, and new counts of earlier rows, in one transaction. Row i gets the number
// w.n + 1 + i. If it fails, nothing is written.
func (w *writeFile) append(rows []*Decision, counts []merged) error {
	n, offset, skew := w.n, w.offset, w.skew
	w.postings = w.postings[:0]
	err := w.db.Within("BEGIN IMMEDIATE", func() error {
		for i, d := range rows {
			t := d.Time.UnixNano()
			n, offset = n+1, max(offset, t)
			skew = max(skew, (offset-t+int64(time.Second)-1)/int64(time.Second))
			bind(w.insert, n, offset, d)
			if err := w.insert.Run(); err != nil {
				return err
			}
			w.postings = appendPostings(w.postings, d, uint32(i), w.seed)
		}
		for _, m := range counts {
			w.update.BindInt(1, int64(m.count))
			w.update.BindInt(2, m.last.UnixNano())
			w.update.BindInt(3, m.n)
			if err := w.update.Run(); err != nil {
				return err
			}
		}
		if skew != w.skew {
			if err := w.db.Exec(fmt.Sprint("UPDATE settings SET skew = ", skew)); err != nil {
				return err
			}
		}
		return w.index(len(rows))
	})
	if err == nil {
		w.n, w.offset, w.skew = n, offset, skew
	} else {
		w.countRecent()
	}
	return err
}
