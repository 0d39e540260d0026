package sqlite

import (
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"sync"
)

// ErrFault says that a file which SQLite maps into memory was truncated. The connection is of no use
// any more, nor is any other one of this process to the same database.
var ErrFault = errors.New("a file of the database was truncated while it was in use")

// faults are the databases that this process cannot use any more.
var faults faulty

type faulty struct {
	mu  sync.Mutex
	all []os.FileInfo
}

func (f *faulty) has(info os.FileInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.all, func(other os.FileInfo) bool { return os.SameFile(info, other) })
}

func (f *faulty) add(info os.FileInfo) {
	if !f.has(info) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, info)
	}
}

// protect turns a fault in mapped memory, which would end the process, into ErrFault. It is deferred, with what
// debug.SetPanicOnFault(true) returned.
func (db *DB) protect(before bool, err *error) {
	debug.SetPanicOnFault(before)
	p := recover()
	if p == nil {
		return
	}
	if _, fault := p.(interface{ Addr() uintptr }); !fault {
		panic(p)
	}
	db.broken = true
	faults.add(db.info)
	*err = ErrFault
}
