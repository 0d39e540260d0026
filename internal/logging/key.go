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

	"spamgate/internal/durable"
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
	key = make([]byte, highwayhash.Size)
	rand.Read(key) // never fails
	if err := durable.WriteNew(path, dir, keyFile+".*", key); err != nil {
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
