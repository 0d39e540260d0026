package sqlite

import (
	"errors"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Error is an error of SQLite.
type Error struct {
	Code int // the extended result code
	text string
}

func (e *Error) Error() string { return e.text }

var errMemory = &Error{Code: lib.SQLITE_NOMEM, text: "out of memory"}

// failed returns the error of the last call.
func (db *DB) failed(rc int32) error {
	e := &Error{Code: int(rc), text: libc.GoString(lib.Xsqlite3_errstr(db.tls, rc))}
	if db.db == 0 {
		return e
	}
	if text := libc.GoString(lib.Xsqlite3_errmsg(db.tls, db.db)); text != e.text && text != "not an error" {
		e.text += ": " + text
	}
	return e
}

// is reports whether an error has one of the primary result codes.
func is(err error, codes ...int) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code&0xff == code {
			return true
		}
	}
	return false
}

// IsBusy reports whether another connection has locked what is needed.
func IsBusy(err error) bool { return is(err, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL) }

// IsDamaged reports whether the file is not a database, or a damaged one.
func IsDamaged(err error) bool { return is(err, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB) }

// IsStatement reports whether a statement is invalid, or does not fit the tables.
func IsStatement(err error) bool { return is(err, lib.SQLITE_ERROR) }

// IsSystem reports whether the error comes from the operating system: a full disk, missing
// rights, no memory.
func IsSystem(err error) bool {
	return is(err, lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_NOMEM)
}
