package fetch

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

// ErrSignature says that a list is not signed as it must be.
var ErrSignature = errors.New("its signature is not good, so the copy stays as it is")

var errNoSignature = errors.New("this is no signature by minisign: check signature_url")

const (
	signatureSuffix = ".minisig"
	maxSignature    = 16 << 10

	// maxLegacy is the largest list with a signature of the older kind, which is
	// over the bytes and not over their hash, so that they have to be in memory
	// at once.
	maxLegacy = 256 << 20

	// hashSize is the size of a BLAKE2b-512 hash.
	hashSize = 64
)

// publicKey is who signs a list. A nil key asks for no signature.
type publicKey struct{ minisign.PublicKey }

// parsePublicKey reads the base64 line or the whole file, as minisign writes it.
func parsePublicKey(text string) (*publicKey, error) {
	var key publicKey
	if err := key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return nil, errors.New(`the public key is none of minisign's: write the last line of its .pub file, which begins with "RW"`)
	}
	return &key, nil
}

// String returns the key in base64; empty for none.
func (k *publicKey) String() string {
	if k == nil {
		return ""
	}
	return k.PublicKey.String()
}

// digest hashes on the way what is read from r, where there is a key.
func (k *publicKey) digest(r io.Reader) io.Reader {
	if k == nil {
		return r
	}
	return minisign.NewReader(r)
}

// verify checks a signature, and that of its trusted comment. The digest is what
// digest made and all was read from; the list holds the same bytes.
func (k *publicKey) verify(text []byte, digest io.Reader, list *draft) error {
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return errNoSignature
	}
	if s.KeyID != k.ID() {
		return fmt.Errorf("it was signed with the key %016X, and public_key is the key %016X: if the list's publisher changed it, change public_key", s.KeyID, k.ID())
	}
	good := false
	if s.Algorithm == minisign.HashEdDSA {
		hashed, ok := digest.(*minisign.Reader)
		good = ok && hashed.Verify(k.PublicKey, text)
	} else {
		message, err := legacyMessage(list)
		if err != nil {
			return err
		}
		good = minisign.Verify(k.PublicKey, message, text)
	}
	if !good {
		return errors.New("the list and its signature do not belong together: the publisher may be changing them just now; else someone else changed the list")
	}
	return nil
}

// legacyMessage returns the list for a signature over its bytes. A list that could be
// a hash is refused: which of the two was signed is not itself signed, and so a
// hash with its signature would pass for a list.
func legacyMessage(list *draft) ([]byte, error) {
	if list.size > maxLegacy || list.size == hashSize {
		return nil, fmt.Errorf("the signature is of minisign's older kind, which is not taken for a list of %d bytes: ask the publisher for one made with -H", list.size)
	}
	return list.bytes()
}
