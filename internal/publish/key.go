package publish

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"aead.dev/minisign"
)

// Key is a minisign secret key.
type Key struct{ private minisign.PrivateKey }

// maxSecret exceeds the size of a file with a key, or with tokens.
const maxSecret = 64 << 10

// ReadKey reads a secret key from a file, which only its owner may read.
func ReadKey(path string) (Key, error) {
	text, err := readSecret(path, "sign lists with it")
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, fmt.Errorf("%w: make a key with spamgate lists publish --new-key %s", err, path)
	}
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

// ReadTokens reads the tokens in a file, one a line, which only its owner may read. An empty
// path means none.
func ReadTokens(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readSecret(path, "fetch the lists")
	if err != nil {
		return nil, err
	}
	var tokens []string
	for line := range strings.Lines(string(text)) {
		token, _, _ := strings.Cut(line, "#")
		if token = strings.TrimSpace(token); token == "" {
			continue
		}
		if len(token) < leastToken || strings.ContainsFunc(token, func(r rune) bool { return !isTokenRune(r) }) {
			return nil, fmt.Errorf("%s: a line is not a token: write %d or more letters and digits, such as openssl rand -hex 16 prints", path, leastToken)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: there is no token in it, so that nobody could fetch: write one a line", path)
	}
	return tokens, nil
}

// leastToken is the length of the shortest token.
const leastToken = 16

// isTokenRune reports whether a token may contain r: what a URL has without escapes.
func isTokenRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~", r)
}

// readSecret reads a file that only its owner may read. Danger says what others could do.
func readSecret(path, danger string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: give it to the user with the number %d (chown), with chmod 600", err, os.Geteuid())
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s: others may read or write this file (mode %v), and so %s: run chmod 600 on it, and replace what somebody could have read", path, info.Mode(), danger)
	}
	return io.ReadAll(io.LimitReader(file, maxSecret))
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
