package logging

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/minio/highwayhash"

	"spamgate/internal/durable"
)

// keyFile is the name of the secret in the state directory.
const keyFile = "key"

// loadKey reads the secret key of a state directory, and makes directory and
// key where they are missing.
func loadKey(dir string) ([]byte, error) {
	tree := durable.In(dir)
	key, err := readKey(tree)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := tree.Make(); err != nil {
		return nil, err
	}
	key = make([]byte, highwayhash.Size)
	rand.Read(key) // never fails
	if err := tree.WriteNew(keyFile, ".", keyFile+".*", key); err != nil {
		return nil, fmt.Errorf("creating %s: %w", tree.Path(keyFile), err)
	}
	return readKey(tree) // of two processes that start at once, the first one's
}

// readKey reads an existing key, which has to be whole and secret.
func readKey(tree durable.Tree) ([]byte, error) {
	path := tree.Path(keyFile)
	f, err := tree.Open(keyFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.Perm()&^0o600 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others may have read it; "+
			"chmod 600 it, or delete it for a new key, under which the same addresses have other hashes", path, mode.Perm())
	}
	if info.Size() != highwayhash.Size {
		return nil, fmt.Errorf("%s has %d bytes instead of %d; put a copy back, "+
			"or delete it for a new key, under which the same addresses have other hashes", path, info.Size(), highwayhash.Size)
	}
	key := make([]byte, highwayhash.Size)
	if _, err := io.ReadFull(f, key); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return key, nil
}
