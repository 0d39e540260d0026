package sqlite

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

func init() { lib.PatchIssue199() }

// DB is a connection to a database file. Only one goroutine at a time may use it and its
// statements, apart from Interrupt.
type DB struct {
	tls    *libc.TLS
	db     uintptr
	info   os.FileInfo
	broken bool // by a fault
}

// Open opens a database that exists; an empty file is an empty database. It follows no
// symbolic link.
func Open(path string, readOnly bool) (*DB, error) {
	flags := int32(lib.SQLITE_OPEN_NOMUTEX | lib.SQLITE_OPEN_NOFOLLOW | lib.SQLITE_OPEN_EXRESCODE)
	if readOnly {
		flags |= lib.SQLITE_OPEN_READONLY
	} else {
		flags |= lib.SQLITE_OPEN_READWRITE
	}
	info, err := os.Lstat(path)
	if err == nil && faults.has(info) {
		err = ErrFault
	}
	if err != nil {
		return nil, err
	}
	db := &DB{tls: libc.NewTLS(), info: info}
	name, err := libc.CString(path)
	if err != nil {
		db.tls.Close()
		return nil, err
	}
	defer libc.Xfree(db.tls, name)
	handle := libc.Xcalloc(db.tls, 1, libc.Tsize_t(unsafe.Sizeof(db.db)))
	if handle == 0 {
		db.tls.Close()
		return nil, errMemory
	}
	defer libc.Xfree(db.tls, handle)
	rc := lib.Xsqlite3_open_v2(db.tls, name, handle, flags, 0)
	db.db = *(*uintptr)(pointer(handle))
	if rc != lib.SQLITE_OK {
		err := db.failed(rc)
		db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// Close closes the connection. All its statements must be closed.
func (db *DB) Close() (err error) {
	if db.tls == nil || db.broken {
		return nil // a broken connection keeps its memory and its locks
	}
	defer db.protect(debug.SetPanicOnFault(true), &err)
	if rc := lib.Xsqlite3_close_v2(db.tls, db.db); rc != lib.SQLITE_OK {
		err = db.failed(rc)
	}
	db.tls.Close()
	db.tls = nil
	return err
}

// Exec runs statements without parameters, and ignores their rows.
func (db *DB) Exec(sql string) (err error) {
	if db.broken {
		return ErrFault
	}
	defer db.protect(debug.SetPanicOnFault(true), &err)
	text, err := libc.CString(sql)
	if err != nil {
		return err
	}
	defer libc.Xfree(db.tls, text)
	if rc := lib.Xsqlite3_exec(db.tls, db.db, text, 0, 0, 0); rc != lib.SQLITE_OK {
		return db.failed(rc)
	}
	return nil
}

// Int runs a statement that returns one number, and returns 0 if it returns no row.
func (db *DB) Int(sql string) (int64, error) {
	s, err := db.Prepare(sql)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if found, err := s.Step(); err != nil || !found {
		return 0, err
	}
	return s.Int(0), nil
}

// Within runs a function in a transaction, which begins with the given statement, and
// commits it, or rolls it back if there is an error.
func (db *DB) Within(begin string, f func() error) error {
	if err := db.Exec(begin); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = db.Exec("COMMIT")
	}
	if err != nil && !db.broken && lib.Xsqlite3_get_autocommit(db.tls, db.db) == 0 {
		db.Exec("ROLLBACK")
	}
	return err
}

// BusyTimeout sets for how many milliseconds a statement waits for a lock.
func (db *DB) BusyTimeout(ms int) { lib.Xsqlite3_busy_timeout(db.tls, db.db, int32(ms)) }

// pointer returns the pointer to memory that the collector does not know.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
