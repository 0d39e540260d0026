package publish

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"aead.dev/minisign"
)

// Key is a minisign secret key.
type Key struct{ private minisign.PrivateKey }

// maxKey exceeds the size of any key's file.
const maxKey = 64 << 10

// ReadKey reads a secret key from a file, which only its owner may read.
func ReadKey(path string) (Key, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, fmt.Errorf("%w: make a key with spamgate lists publish --new-key %s", err, path)
	}
	if err != nil {
		return Key{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return Key{}, err
	case !info.Mode().IsRegular():
		return Key{}, fmt.Errorf("%s: not a regular file, and so not a key", path)
	case info.Mode().Perm()&0o077 != 0:
		return Key{}, fmt.Errorf("%s: others may read or write this key (mode %v), and sign lists with it: run chmod 600 on it, and make a new key if somebody could have read it", path, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKey))
	if err != nil {
		return Key{}, err
	}
	if minisign.IsEncrypted(text) {
		return Key{}, fmt.Errorf("%s: this key has a password: use one without, made with minisign -G -W or spamgate lists publish --new-key FILE", path)
	}
	var key Key
	if err := key.private.UnmarshalText(text); err != nil {
		return Key{}, fmt.Errorf("%s: this is not a secret key of minisign", path)
	}
	return key, nil
}

// NewKey makes a secret key and writes it to a new file, which only its owner may read.
func NewKey(path string) (Key, error) {
	_, private, err := minisign.GenerateKey(nil)
	if err != nil {
		return Key{}, err
	}
	text, err := private.MarshalText()
	if err != nil {
		return Key{}, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return Key{}, fmt.Errorf("%s: there is a file already; a key is never replaced: name another file", path)
	}
	if err != nil {
		return Key{}, err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return Key{}, errors.Join(err, os.Remove(path))
	}
	return Key{private}, nil
}

// Public returns the public key. Its String method returns the line for public_key.
func (k Key) Public() minisign.PublicKey { return k.private.Public().(minisign.PublicKey) }

// sign signs what was read from a reader.
func (k Key) sign(r *minisign.Reader, c Comment) []byte {
	return r.SignWithComments(k.private, c.String(), "signature from minisign secret key")
}
