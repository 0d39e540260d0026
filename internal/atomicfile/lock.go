package atomicfile

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockTimeout bounds the wait of [Tree.Lock]. A process holds the lock to write a
// small file, or to compress an old version of a list.
const lockTimeout = 30 * time.Second

var errLocked = errors.New("another process has had this directory locked for 30 seconds: try again when it has finished")

// Lock waits for the lock of a directory of the Tree, at most 30 seconds, since
// everyone who may open the directory may lock it. The lock ends with the process.
func (t Tree) Lock(name string) (unlock func(), err error) {
	const first, most = time.Millisecond, 200 * time.Millisecond
	deadline := time.Now().Add(lockTimeout)
	for pause := time.Duration(first); ; pause = min(2*pause, most) {
		unlock, err = t.TryLock(name)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return unlock, err
		}
		if time.Now().After(deadline) {
			return nil, t.failed("lock", name, errLocked)
		}
		time.Sleep(pause)
	}
}

// TryLock is Lock without the wait: if another process has the lock the error is
// EWOULDBLOCK.
func (t Tree) TryLock(name string) (unlock func(), err error) {
	return unlock, t.do("lock", func(root *os.Root) error {
		d, err := openDir(root, name)
		if err != nil {
			return err
		}
		for {
			err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err != syscall.EINTR {
				break
			}
		}
		if err != nil {
			d.Close()
			return err
		}
		unlock = func() { d.Close() }
		return nil
	}, name)
}
