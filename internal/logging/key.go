package logging

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
)

// keyFile is the name of the secret in the state directory.
const keyFile = "key"

// loadKey reads the secret key of a state directory, and makes directory and
// key where they are missing.
func loadKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := createKey(dir, path); err != nil {
		return nil, fmt.Errorf("creating %s: %w", path, err)
	}
	return readKey(path) // of two processes that start at once, the first one's
}

// readKey reads an existing key, which has to be whole and secret.
func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() {
		return nil, fmt.Errorf("%s is no regular file; move it away, and a new key is made", path)
	} else if mode.Perm()&^0o600 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others may have read it; "+
			"chmod 600 it, or delete it for a new key, under which the same addresses have other hashes", path, mode.Perm())
	}
	if info.Size() != highwayhash.Size {
		return nil, fmt.Errorf("%s has %d bytes instead of %d; put a copy back, "+
			"or delete it for a new key, under which the same addresses have other hashes", path, info.Size(), highwayhash.Size)
	}
	key := make([]byte, highwayhash.Size)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.ReadFull(f, key); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return key, nil
}

// createKey writes a new random key. The file appears whole or not at all, and
// never takes the place of another: the link fails if there is one, which is
// as good.
func createKey(dir, path string) error {
	f, err := os.CreateTemp(dir, keyFile+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, highwayhash.Size)
	rand.Read(key) // never fails
	_, err = f.Write(key)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a new name in a directory outlast a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
