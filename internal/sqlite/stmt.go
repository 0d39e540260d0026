package sqlite

import (
	"runtime/debug"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// transient tells SQLite to copy a value before the call returns.
const transient = ^uintptr(0)

// Stmt is a prepared statement.
type Stmt struct {
	db      *DB
	stmt    uintptr
	scratch uintptr // values on their way to SQLite, which must not lie on a stack of Go
	size    int
	err     error // of a Bind, which Step returns
}

// Prepare prepares a statement.
func (db *DB) Prepare(sql string) (_ *Stmt, err error) {
	if db.broken {
		return nil, ErrFault
	}
	defer db.protect(debug.SetPanicOnFault(true), &err) // it reads the schema
	text, err := libc.CString(sql)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(db.tls, text)
	s := &Stmt{db: db}
	if !s.grow(int(unsafe.Sizeof(s.stmt))) {
		return nil, errMemory
	}
	if rc := lib.Xsqlite3_prepare_v3(db.tls, db.db, text, -1, lib.SQLITE_PREPARE_PERSISTENT, s.scratch, 0); rc != lib.SQLITE_OK {
		libc.Xfree(db.tls, s.scratch)
		return nil, db.failed(rc)
	}
	s.stmt = *(*uintptr)(pointer(s.scratch))
	return s, nil
}

// grow makes the scratch memory at least n bytes long.
func (s *Stmt) grow(n int) bool {
	if n <= s.size {
		return true
	}
	libc.Xfree(s.db.tls, s.scratch)
	s.size = max(n, 512)
	s.scratch = libc.Xmalloc(s.db.tls, libc.Tsize_t(s.size))
	if s.scratch == 0 {
		s.size = 0
	}
	return s.scratch != 0
}

// Close ends a statement.
func (s *Stmt) Close() {
	if s.db.broken {
		return
	}
	lib.Xsqlite3_finalize(s.db.tls, s.stmt)
	libc.Xfree(s.db.tls, s.scratch)
}

// BindInt sets parameter i, from 1 on.
func (s *Stmt) BindInt(i int, v int64) {
	s.bound(lib.Xsqlite3_bind_int64(s.db.tls, s.stmt, int32(i), v))
}

// BindNull sets parameter i to NULL.
func (s *Stmt) BindNull(i int) { s.bound(lib.Xsqlite3_bind_null(s.db.tls, s.stmt, int32(i))) }

// BindText sets parameter i to a text.
func (s *Stmt) BindText(i int, v string) {
	if !s.grow(len(v) + 1) {
		s.err = errMemory
		return
	}
	copy(unsafe.Slice((*byte)(pointer(s.scratch)), len(v)), v)
	s.bound(lib.Xsqlite3_bind_text(s.db.tls, s.stmt, int32(i), s.scratch, int32(len(v)), transient))
}

// BindBlob sets parameter i to bytes.
func (s *Stmt) BindBlob(i int, v []byte) {
	if !s.grow(len(v) + 1) {
		s.err = errMemory
		return
	}
	copy(unsafe.Slice((*byte)(pointer(s.scratch)), len(v)), v)
	s.bound(lib.Xsqlite3_bind_blob(s.db.tls, s.stmt, int32(i), s.scratch, int32(len(v)), transient))
}

func (s *Stmt) bound(rc int32) {
	if rc != lib.SQLITE_OK && s.err == nil {
		s.err = s.db.failed(rc)
	}
}

// Step runs the statement up to its next row, and reports whether there is one. Without one
// the statement can run again at once.
func (s *Stmt) Step() (row bool, err error) {
	if s.err != nil {
		err, s.err = s.err, nil
		return false, err
	}
	if s.db.broken {
		return false, ErrFault
	}
	defer s.db.protect(debug.SetPanicOnFault(true), &err)
	switch rc := lib.Xsqlite3_step(s.db.tls, s.stmt); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		s.Reset()
		return false, nil
	default:
		err = s.db.failed(rc)
		s.Reset()
		return false, err
	}
}

// Run runs a statement without rows.
func (s *Stmt) Run() error {
	_, err := s.Step()
	s.Reset()
	return err
}

// Reset lets the statement begin again. Its parameters stay.
func (s *Stmt) Reset() {
	if !s.db.broken {
		lib.Xsqlite3_reset(s.db.tls, s.stmt)
	}
}

// Int returns column i, from 0 on, as a number.
func (s *Stmt) Int(i int) int64 { return lib.Xsqlite3_column_int64(s.db.tls, s.stmt, int32(i)) }

// Null reports whether column i is NULL.
func (s *Stmt) Null(i int) bool {
	return lib.Xsqlite3_column_type(s.db.tls, s.stmt, int32(i)) == lib.SQLITE_NULL
}

// Text returns column i as a text.
func (s *Stmt) Text(i int) string {
	p := lib.Xsqlite3_column_text(s.db.tls, s.stmt, int32(i))
	return string(s.bytes(p, i))
}

// Blob returns the bytes of column i. They are valid until the next Step or Reset.
func (s *Stmt) Blob(i int) []byte {
	p := lib.Xsqlite3_column_blob(s.db.tls, s.stmt, int32(i))
	return s.bytes(p, i)
}

func (s *Stmt) bytes(p uintptr, i int) []byte {
	if p == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(p)), lib.Xsqlite3_column_bytes(s.db.tls, s.stmt, int32(i)))
}
