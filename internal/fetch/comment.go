package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// maxAhead is how far ahead of the clock a signature may be. One that is further ahead would
// make all later ones look old.
const maxAhead = 24 * time.Hour

// The fields of the trusted comment. minisign writes the first two by itself:
// "timestamp:1795300739\tfile:list.txt\thashed". Those after them are optional:
// spamgate lists publish writes all (see package publish).
const (
	timestampField = "timestamp:"
	fileField      = "file:"
	sequenceField  = "sequence:"
	expiresField   = "expires:"
	sumField       = "sha256:"
)

// trusted is what a trusted comment says.
type trusted struct {
	File      string
	Timestamp int64  // when the signature was made, Unix time
	Sequence  int64  // of the version; 0 if it has none
	Expires   int64  // when the signature is too old, Unix time; 0 means never
	SHA256    string // of the list, in hex; empty if it is not there
}

// checkComment checks that a signature with this trusted comment is for this list, not
// older than the last one that was accepted, and not expired. It returns what the comment
// says.
func (s Source) checkComment(comment string, last state, now time.Time) (trusted, error) {
	c, err := parseComment(comment)
	if err != nil {
		return trusted{}, fmt.Errorf("its trusted comment %q %w", comment, err)
	}
	want, err := s.signedFile()
	if err != nil {
		return trusted{}, err
	}
	if c.File != want {
		return trusted{}, fmt.Errorf("it is for the file %q, not for %q, so that this may be another list: if the publisher calls this list %q, set signed_file to that", c.File, want, c.File)
	}
	instant := time.Unix(c.Timestamp, 0).UTC()
	back := "to go back to it, run spamgate lists fetch " + s.Name + " --force"
	switch {
	case instant.After(now.Add(maxAhead)):
		return trusted{}, fmt.Errorf("it was made in the future, at %s: check the clock here, and the publisher's", instant.Format(time.RFC3339))
	case s.Force:
		return c, nil
	case c.Timestamp < last.Signed:
		return trusted{}, fmt.Errorf("%w: it was made at %s, before the last one that was accepted (%s): %s",
			ErrOlder, instant.Format(time.RFC3339), time.Unix(last.Signed, 0).UTC().Format(time.RFC3339), back)
	case c.Sequence != 0 && c.Sequence < last.Sequence:
		return trusted{}, fmt.Errorf("%w: it has the sequence number %d, and %d was accepted: %s", ErrOlder, c.Sequence, last.Sequence, back)
	}
	return c, expired(c.Expires, now)
}

// ErrExpired means that a version was signed for a time that is over.
var ErrExpired = errors.New("its signature has expired")

// expired returns an ErrExpired once a time has come; 0 means never.
func expired(offset int64, now time.Time) error {
	if offset == 0 || now.Unix() < offset {
		return nil
	}
	return fmt.Errorf("%w, on %s: either the publisher has stopped signing the list, or somebody serves an old version",
		ErrExpired, time.Unix(offset, 0).UTC().Format(time.RFC3339))
}

// signedFile returns the name that the signature has to confirm.
func (s Source) signedFile() (string, error) {
	if s.SignedFile != "" {
		return s.SignedFile, nil
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	if name := path.Base(u.Path); name != "." && name != "/" {
		return name, nil
	}
	return "", errors.New("the list's URL does not end in the name of a file: set signed_file to the name that the publisher signs")
}

// parseComment returns what a trusted comment says. The error completes a sentence that
// begins with the comment.
func parseComment(comment string) (c trusted, err error) {
	fields := strings.Split(strings.TrimRight(comment, "\r"), "\t")
	file, files := fieldOf(fields, fileField)
	text, times := fieldOf(fields, timestampField)
	if files != 1 || times != 1 {
		return trusted{}, errors.New(`has to contain "timestamp:" and "file:" once, as minisign writes them, or else this may be another list or an older version: ask the publisher to sign without a comment of their own (-t)`)
	}
	c.File = file
	if c.Timestamp, err = strconv.ParseInt(text, 10, 64); err != nil || c.Timestamp < 0 {
		return trusted{}, fmt.Errorf("has the timestamp %q, which is not a number of seconds", text)
	}
	for _, f := range []struct {
		name string
		to   *int64
	}{{sequenceField, &c.Sequence}, {expiresField, &c.Expires}} {
		text, n := fieldOf(fields, f.name)
		if n == 0 {
			continue
		}
		if *f.to, err = strconv.ParseInt(text, 10, 64); n > 1 || err != nil || *f.to < 1 {
			return trusted{}, fmt.Errorf("has %q, which is not a single positive number", f.name+text)
		}
	}
	sum, n := fieldOf(fields, sumField)
	if c.SHA256 = sum; n > 1 || n == 1 && !isSum(sum) {
		return trusted{}, fmt.Errorf("has %q, which is not a single SHA-256 in hex", sumField+sum)
	}
	return c, nil
}

// isSum reports whether a text is a SHA-256 in lower-case hex.
func isSum(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// fieldOf returns the value of the first field with a name, and how many there are.
func fieldOf(fields []string, name string) (value string, n int) {
	for _, f := range fields {
		if v, ok := strings.CutPrefix(f, name); ok {
			if n++; n == 1 {
				value = v
			}
		}
	}
	return value, n
}
