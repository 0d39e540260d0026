package fleet

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"spamgate/internal/text"
)

// Kind says what a shared file is.
type Kind string

// The kinds of shared files.
const (
	Managed  Kind = "managed"  // a list that the gates keep
	Fetched  Kind = "fetched"  // a list from a URL
	Accounts Kind = "accounts" // the accounts of the console
)

// Version is a version of a list: the value of its key in the fleet. Its content is stored as a
// whole, or it is an edit of the version before, or both.
type Version struct {
	Format   int    `json:"format"`
	List     string `json:"list"`
	Kind     Kind   `json:"kind"`
	Sequence uint64 `json:"sequence"` // counts the versions of the list, from 1
	SHA256   string `json:"sha256"`   // of the content, in hexadecimal
	Size     int64  `json:"size"`
	Base     string `json:"base,omitempty"` // the SHA-256 of the version before

	// Snapshot is SHA256: gates before Edit look for the content there. They wrote others, too, with
	// changes that only they can read; such a content comes once a gate has stored it as a whole.
	Snapshot string `json:"snapshot"`

	// Edit is the script (package rcs), packed, that makes the content of that of Base. Whole is
	// the SHA-256 of the last version before that was stored as a whole, and Since what the edits
	// since then count in bytes: see setEdit.
	Edit  []byte `json:"edit,omitempty"`
	Whole string `json:"whole,omitempty"`
	Since int64  `json:"since,omitempty"` // 0: there is no edit

	// Inline has the whole content, by the name of its object, if it is so small that it is here,
	// and not in the object store.
	Inline map[string][]byte `json:"inline,omitempty"`

	Author string    `json:"author,omitempty"` // who made the change: an account or a user
	Member string    `json:"member"`           // the gate on which it was made
	What   string    `json:"what,omitempty"`
	Why    string    `json:"why,omitempty"`
	Time   time.Time `json:"time"`

	// Accepted says that a person wanted this content: each gate accepts it in advance, so
	// that it is not held for its size.
	Accepted bool `json:"accepted,omitempty"`

	// Fetch is the state of a fetched copy (package fetch), for the gate that fetches next.
	Fetch json.RawMessage `json:"fetch,omitempty"`
}

const (
	versionFormat = 1

	maxValue    = 256 << 10 // of a key, in bytes
	maxValues   = 100_000   // in a bucket, with earlier ones
	maxText     = 1000      // of author, what and why, in bytes
	maxSequence = 1 << 53
	maxFetch    = 64 << 10

	maxInline = 16 << 10 // of a whole content in a value, packed, in bytes
)

// errNewer says that a newer version of spamgate has written a value.
var errNewer = errors.New("a newer version of spamgate has written it, which this one does not understand: upgrade this gate")

// parseVersion parses the value of a list's key. It trusts nothing in it.
func parseVersion(value []byte, name string, kind Kind) (*Version, error) {
	var head struct {
		Format int `json:"format"`
	}
	v := new(Version)
	switch {
	case len(value) > maxValue:
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(value), maxValue)
	case json.Unmarshal(value, &head) == nil && head.Format > versionFormat:
		return nil, errNewer
	}
	if err := json.Unmarshal(value, v); err != nil {
		return nil, err
	}
	if err := v.check(name, kind); err != nil {
		return nil, err
	}
	for _, s := range []*string{&v.Author, &v.Member, &v.What, &v.Why} {
		*s = shortened(*s)
	}
	return v, nil
}

// check checks what parseVersion has read.
func (v *Version) check(name string, kind Kind) error {
	switch {
	case v.Format != versionFormat:
		return fmt.Errorf("it has the format %d", v.Format)
	case v.List != name:
		return fmt.Errorf("it is about the list %q", shortened(v.List))
	case v.Kind != kind:
		return fmt.Errorf("it is of the kind %q", shortened(string(v.Kind)))
	case v.Sequence < 1 || v.Sequence > maxSequence:
		return fmt.Errorf("it has the sequence %d", v.Sequence)
	case v.Size < 0 || v.Since < 0 || len(v.Edit) > maxEdit || len(v.Fetch) > maxFetch:
		return errors.New("it has impossible sizes")
	case !isSHA256(v.SHA256) || !isSHA256(v.Snapshot) || v.Base != "" && !isSHA256(v.Base):
		return errors.New("it has a digest that is not a SHA-256")
	case (v.Since > 0) != (len(v.Edit) > 0) || v.Since > 0 && !(isSHA256(v.Whole) && v.Base != ""):
		return errors.New("it has an edit of nothing")
	}
	return nil
}

// isSHA256 reports whether a text is a SHA-256 as this package writes it.
func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && hex.EncodeToString(b) == s
}

// shortened returns a text from the fleet on one line, of printable characters and of bounded
// length.
func shortened(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		s += "..."
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// beats reports whether v counts in all gates if other has the same sequence.
func (v *Version) beats(other *Version) bool {
	return cmp.Or(v.Time.Compare(other.Time), cmp.Compare(v.SHA256, other.SHA256)) > 0
}

// String returns the version in words, for the log.
func (v *Version) String() string {
	return fmt.Sprintf("sequence %d, %s, %s", v.Sequence, v.SHA256[:12], text.Count(int(v.Size), "byte", "bytes"))
}

// encode returns the value of the list's key.
func (v *Version) encode() ([]byte, error) {
	if v.Sequence > maxSequence {
		return nil, fmt.Errorf("the sequence of list %s is used up: docs/fleet.md says how to begin anew", v.List)
	}
	value, err := json.Marshal(v)
	if err == nil && len(value) > maxValue {
		err = fmt.Errorf("the version of list %s has %d bytes, more than %d", v.List, len(value), maxValue)
	}
	return value, err
}

// keyOf returns the key of a shared file: what a key may not have is written as "=2E". A list whose
// kind changes has another key: it begins anew, with what its gates have then.
func keyOf(kind Kind, name string) string {
	group := string(kind)
	if kind == Managed {
		group = "list"
	}
	return group + "." + escaped(name)
}

// escaped returns a name as a part of a key.
func escaped(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// unescaped returns the name of which escaped made a part of a key.
func unescaped(part string) (name string, ok bool) {
	var b []byte
	for i := 0; i < len(part); i++ {
		c := part[i]
		if c == '=' {
			if i+3 > len(part) {
				return "", false
			}
			x, err := hex.DecodeString(part[i+1 : i+3])
			if err != nil {
				return "", false
			}
			c, i = x[0], i+2
		}
		b = append(b, c)
	}
	return string(b), escaped(string(b)) == part
}
