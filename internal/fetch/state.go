package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxState exceeds the size of any state.
const maxState = 1 << 20

// stateSuffix is appended to the copy's name.
const stateSuffix = ".json"

// state is what is known of a copy. It is in a separate file, so it may be that of an
// earlier copy: after a crash between the two renames, or if somebody else wrote the
// copy.
type state struct {
	URL          string    `json:"url"`
	PublicKey    string    `json:"public_key,omitempty"` // the key that the copy is signed with
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	Fetched      time.Time `json:"fetched"` // when the bytes were received
	Checked      time.Time `json:"checked"` // when the server last confirmed them
	Bytes        int64     `json:"bytes"`
	SHA256       string    `json:"sha256"`
	Modified     time.Time `json:"modified"` // the copy's modification time

	// Instead is the sum of the server's version if ReplaceCopy has replaced it.
	// ETag and LastModified are the server's.
	Instead string `json:"instead,omitempty"`

	// Signed is the Unix time of the newest signature that was accepted, Sequence the
	// highest sequence number in one, and Expires when the last one expires; 0 means that
	// it does not say.
	Signed   int64 `json:"signed,omitempty"`
	Sequence int64 `json:"sequence,omitempty"`
	Expires  int64 `json:"expires,omitempty"`

	// Named means that the copy's signature names the sum of the list, so that it shows
	// whether there is a new version. Signature is the server's identifier of it then, and
	// Waits means that the server can answer when there is a new one. SignatureSum is
	// signature.sum of it.
	Named        bool   `json:"named,omitempty"`
	Signature    string `json:"signature,omitempty"`
	SignatureSum string `json:"signature_sum,omitempty"`
	Waits        bool   `json:"waits,omitempty"`

	// Torn is the sum of a later version that was refused with ErrTorn.
	Torn string `json:"torn,omitempty"`
}

var errOtherCopy = errors.New("the state does not match the copy")

// loadState reads the state of a source's copy. It is empty, with an error, if there is
// no copy, or if the state does not match the copy. Only what does not depend on the copy
// remains then. A state of another URL or key is empty.
func loadState(s Source) (state, error) {
	tree, name := s.place()
	info, missing := tree.StatFile(name)
	text, err := tree.ReadFile(name+stateSuffix, maxState)
	if err != nil {
		return state{}, err
	}
	st, err := parseState(text)
	if err != nil {
		return state{}, fmt.Errorf("%s: %w", s.Copy+stateSuffix, err)
	}
	key, _, err := s.parse()
	if err != nil {
		return state{}, err
	}
	if st.URL != s.URL || st.PublicKey != key.String() {
		return state{}, errOtherCopy
	}
	without := state{Signed: st.Signed, Sequence: st.Sequence}
	if missing != nil {
		return without, missing
	}
	if st.Bytes != info.Size() {
		return without, errOtherCopy
	}
	if st.Modified.Equal(info.ModTime()) {
		return st, nil
	}
	// A copy that was moved to another machine has another time and the same content.
	sum, err := s.fileSum()
	if err != nil {
		return without, err
	}
	if sum != st.SHA256 {
		return without, errOtherCopy
	}
	return st, nil
}

// parseState parses a state, which may come from another gate of a fleet.
func parseState(text []byte) (st state, err error) {
	if err := json.Unmarshal(text, &st); err != nil {
		return state{}, err
	}
	for _, value := range []string{st.ETag, st.LastModified, st.Signature} { // they are sent to the server
		if len(value) > maxIdentifier || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return state{}, errors.New("it has an identifier that no server has sent")
		}
	}
	if st.Bytes < 0 || st.Sequence < 0 {
		return state{}, errors.New("it has a negative number")
	}
	return st, nil
}

// maxIdentifier bounds a server's identifier of a version, in bytes.
const maxIdentifier = 4 << 10

// describe sets what a status says of the copy.
func (st state) describe(s *Status) {
	s.ETag, s.LastModified = st.ETag, st.LastModified
	s.LastGood, s.Bytes, s.Sequence = st.Checked, st.Bytes, st.Sequence
	if st.Expires != 0 {
		s.Expires = time.Unix(st.Expires, 0)
	}
}

// save writes the state beside the copy.
func (st state) save(s Source) error {
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	tree, name := s.place()
	d, err := newDraft(tree, name+stateSuffix)
	if err != nil {
		return err
	}
	defer d.discard()
	d.mode = stateMode
	if _, err := d.Write(append(text, '\n')); err != nil {
		return err
	}
	_, err = d.commit()
	return err
}

// fileSum returns the SHA-256 of the copy.
func (s Source) fileSum() (string, error) {
	tree, name := s.place()
	file, err := tree.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// LastGood returns when the server last sent or confirmed the content of a source's copy
// to any process; zero if that is not known. It also reports whether [ReplaceCopy] has
// replaced the server's version.
func LastGood(s Source) (good time.Time, replaced bool) {
	st, err := loadState(s.withDefaults())
	if err != nil {
		return time.Time{}, false
	}
	return st.Checked, st.Instead != ""
}
