package logging

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/minio/highwayhash"

	"spamgate/internal/atomicfile"
)

// keyFile is the name of the secret key in the state directory.
const keyFile = "key"

// maxKeyFile bounds what is read of a damaged key file.
const maxKeyFile = 4096

// loadKey reads the secret key of a state directory. It makes a missing directory and
// a missing key.
func loadKey(dir string) ([]byte, error) {
	tree := atomicfile.In(dir)
	key, err := readKey(tree)
	if errors.Is(err, errNewerKey) {
		err = setAside(tree, err)
	}
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
	return readKey(tree) // another process may have been faster
}

// errNewerKey says that another version of the program has made the key file: one of this
// version is never longer.
var errNewerKey = errors.New("not a key of this version")

// setAside renames the key file of another version, which finds it there. It returns
// fs.ErrNotExist then.
func setAside(tree atomicfile.Tree, why error) error {
	const aside = keyFile + ".aside"
	if err := tree.Rename(keyFile, aside); err != nil {
		return errors.Join(why, err)
	}
	slog.Warn("state of another version set aside: addresses have other hashes from here on", "file", tree.Path(aside), "error", why)
	return fs.ErrNotExist
}

// HasKey reports whether a state directory has a key for hashed addresses. An error says that it
// is not known, as for a user who may not enter the directory.
func HasKey(dir string) (bool, error) {
	_, err := atomicfile.In(dir).StatFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readKey reads an existing key, which must be complete and secret.
func readKey(tree atomicfile.Tree) ([]byte, error) {
	path := tree.Path(keyFile)
	info, err := tree.StatFile(keyFile)
	if err != nil {
		return nil, err
	}
	const newKey = "or delete it for a new key, with which the same addresses have other hashes"
	if mode := info.Mode(); mode.Perm()&^0o600 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others may have read it; chmod 600 it, "+newKey, path, mode.Perm())
	}
	key, err := tree.ReadFile(keyFile, maxKeyFile)
	if err != nil {
		return nil, err
	}
	if len(key) > highwayhash.Size {
		return nil, fmt.Errorf("%s: %w: %d bytes instead of %d", path, errNewerKey, len(key), highwayhash.Size)
	}
	if len(key) != highwayhash.Size {
		return nil, fmt.Errorf("%s has %d bytes instead of %d; restore a copy, "+newKey, path, len(key), highwayhash.Size)
	}
	return key, nil
}
