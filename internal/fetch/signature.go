package fetch

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

// ErrSignature means that a list does not have the required signature.
var ErrSignature = errors.New("its signature is not valid, so the copy stays as it is")

// ErrOlder means that a list has the required signature, and is older than the last one that was
// accepted.
var ErrOlder = errors.New("it is older than the version that was accepted, so the copy stays as it is")

var errNoSignature = errors.New("this is not a minisign signature: check signature_url")

const (
	signatureSuffix = ".minisig"
	maxSignature    = 16 << 10

	// maxLegacy is the largest list with a signature of the older kind. That signs
	// the bytes and not their hash, so all of them have to be in memory.
	maxLegacy = 256 << 20

	// hashSize is the size of a BLAKE2b-512 hash.
	hashSize = 64
)

// publicKey verifies a list. A nil key requires no signature.
type publicKey struct{ minisign.PublicKey }

// parsePublicKey parses the base64 line or the whole file that minisign writes.
func parsePublicKey(text string) (*publicKey, error) {
	var key publicKey
	if err := key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return nil, errors.New(`the public key is not a minisign key: use the last line of its .pub file, which begins with "RW"`)
	}
	return &key, nil
}

// String returns the key in base64; empty for nil.
func (k *publicKey) String() string {
	if k == nil {
		return ""
	}
	return k.PublicKey.String()
}

// digest returns a reader that hashes what is read from r, if there is a key.
func (k *publicKey) digest(r io.Reader) io.Reader {
	if k == nil {
		return r
	}
	return minisign.NewReader(r)
}

// verify checks a signature, and that of its trusted comment, which it returns. Digest is
// the reader that the whole list was read from.
func (k *publicKey) verify(text []byte, digest io.Reader, list *draft) (comment string, err error) {
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return "", errNoSignature
	}
	if s.KeyID != k.ID() {
		return "", fmt.Errorf("it was signed with the key %016X, and public_key is the key %016X: if the list's publisher changed it, change public_key", s.KeyID, k.ID())
	}
	good := false
	if s.Algorithm == minisign.HashEdDSA {
		hashed, ok := digest.(*minisign.Reader)
		good = ok && hashed.Verify(k.PublicKey, text)
	} else {
		message, err := legacyMessage(list)
		if err != nil {
			return "", err
		}
		good = minisign.Verify(k.PublicKey, message, text)
	}
	if !good {
		return "", errors.New("the list and its signature do not match: the publisher may be changing them just now; else somebody else changed the list")
	}
	return s.TrustedComment, nil
}

// legacyMessage returns the list for a signature over its bytes. It refuses a list that
// could be a hash: the signature does not say which of the two it signs, so a hash with
// its signature would pass for a list.
func legacyMessage(list *draft) ([]byte, error) {
	if list.size > maxLegacy || list.size == hashSize {
		return nil, fmt.Errorf("the signature is of minisign's older kind, which is not accepted for a list of %d bytes: ask the publisher for one made with -H", list.size)
	}
	return list.bytes()
}
