package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxState is more than any state has.
const maxState = 1 << 20

// stateSuffix is behind the copy's name in that of its state.
const stateSuffix = ".json"

// state is what is known of a copy. It is a file of its own, and so may be that
// of an earlier copy: after a crash between the two renames, or when someone else
// wrote the copy.
type state struct {
	URL          string    `json:"url"`
	PublicKey    string    `json:"public_key,omitempty"` // by which the copy is signed
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	Fetched      time.Time `json:"fetched"` // when the bytes came
	Checked      time.Time `json:"checked"` // when the server last said that they are up to date
	Bytes        int64     `json:"bytes"`
	SHA256       string    `json:"sha256"`
	Modified     time.Time `json:"modified"` // the copy's time of modification

	// Instead is the sum of the server's version where somebody has put another
	// one in its place: see ReplaceCopy. ETag and LastModified are the server's.
	Instead string `json:"instead,omitempty"`
}

var errOtherCopy = errors.New("the state is not that of the copy")

// loadState reads the state of a source's copy. It is empty, with an error,
// when there is no copy, or the state is not of this copy, this URL and this key.
func loadState(s Source) (state, error) {
	tree, name := s.place()
	info, err := tree.StatFile(name)
	if err != nil {
		return state{}, err
	}
	text, err := tree.ReadFile(name+stateSuffix, maxState)
	if err != nil {
		return state{}, err
	}
	var st state
	if err := json.Unmarshal(text, &st); err != nil {
		return state{}, fmt.Errorf("%s: %w", s.Copy+stateSuffix, err)
	}
	key, _, err := s.parse()
	if err != nil {
		return state{}, err
	}
	if st.URL != s.URL || st.PublicKey != key.String() || st.Bytes != info.Size() {
		return state{}, errOtherCopy
	}
	if st.Modified.Equal(info.ModTime()) {
		return st, nil
	}
	// A copy that was moved to another machine is another file with the same
	// content.
	sum, err := s.fileSum()
	if err != nil {
		return state{}, err
	}
	if sum != st.SHA256 {
		return state{}, errOtherCopy
	}
	return st, nil
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

// LastGood returns when the server last had or confirmed what a source's copy holds,
// whoever asked it; zero where that is not known. Replaced says that somebody has
// put another version there than the server has: see [ReplaceCopy].
func LastGood(s Source) (good time.Time, replaced bool) {
	st, err := loadState(s.withDefaults())
	if err != nil {
		return time.Time{}, false
	}
	return st.Checked, st.Instead != ""
}
