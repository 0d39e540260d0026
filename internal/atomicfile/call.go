package atomicfile

import "os"

// Call is a call of the file system that may change or sync what is on disk.
type Call struct {
	Op    string   // "create", "mkdir", "rename", "link", "remove", "open", "write", "sync" ...
	Paths []string // none if it is about File
	File  *os.File // what is written or synced
	Data  []byte   // what is appended
	Do    func() error
}

// Hook, if not nil, gets each Call in place of its being made. It is for simulations of disks that
// fail and forget; the product leaves it nil.
var Hook func(Call) error

func (c Call) make() error {
	if Hook != nil {
		return Hook(c)
	}
	return c.Do()
}

// Do makes a [Call].
func Do(op string, do func() error, paths ...string) error {
	return Call{Op: op, Paths: paths, Do: do}.make()
}

// Rename is [os.Rename].
func Rename(from, to string) error {
	return Do("rename", func() error { return os.Rename(from, to) }, from, to)
}

// Remove is [os.Remove].
func Remove(name string) error { return Do("remove", func() error { return os.Remove(name) }, name) }

// Sync is [os.File.Sync].
func Sync(f *os.File) error { return Call{Op: "sync", File: f, Do: f.Sync}.make() }

// Write is [os.File.Write], for files that are only appended to.
func Write(f *os.File, b []byte) (n int, err error) {
	err = Call{Op: "write", File: f, Data: b, Do: func() (err error) { n, err = f.Write(b); return err }}.make()
	return n, err
}

// WriteAt is [os.File.WriteAt].
func WriteAt(f *os.File, b []byte, offset int64) (n int, err error) {
	err = Call{Op: "write", File: f, Do: func() (err error) { n, err = f.WriteAt(b, offset); return err }}.make()
	return n, err
}
