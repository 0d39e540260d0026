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

// The fields of the trusted comment that minisign writes by itself:
// "timestamp:1795300739\tfile:list.txt\thashed".
const (
	timestampField = "timestamp:"
	fileField      = "file:"
)

// checkComment checks that a signature with this trusted comment is for this list, and not
// older than the last one. It returns the time when the signature was made.
func (s Source) checkComment(comment string, last int64, now time.Time) (made int64, err error) {
	file, timestamp, err := parseComment(comment)
	if err != nil {
		return 0, fmt.Errorf("its trusted comment %q %w", comment, err)
	}
	want, err := s.signedFile()
	if err != nil {
		return 0, err
	}
	if file != want {
		return 0, fmt.Errorf("it is for the file %q, not for %q, so that this may be another list: if the publisher calls this list %q, set signed_file to that", file, want, file)
	}
	at := time.Unix(timestamp, 0).UTC()
	switch {
	case at.After(now.Add(maxAhead)):
		return 0, fmt.Errorf("it was made in the future, at %s: check the clock here, and the publisher's", at.Format(time.RFC3339))
	case timestamp < last && !s.Force:
		return 0, fmt.Errorf("it was made at %s, before the last one that was accepted (%s), so that this is an older version: to go back to it, run spamgate lists fetch %s --force",
			at.Format(time.RFC3339), time.Unix(last, 0).UTC().Format(time.RFC3339), s.Name)
	}
	return timestamp, nil
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

// parseComment returns the fields of a trusted comment. The error completes a sentence that
// begins with the comment.
func parseComment(comment string) (file string, timestamp int64, err error) {
	fields := strings.Split(strings.TrimRight(comment, "\r"), "\t")
	file, files := fieldOf(fields, fileField)
	text, times := fieldOf(fields, timestampField)
	if files != 1 || times != 1 {
		return "", 0, errors.New(`has to contain "timestamp:" and "file:" once, as minisign writes them, or else this may be another list or an older version: ask the publisher to sign without a comment of their own (-t)`)
	}
	if timestamp, err = strconv.ParseInt(text, 10, 64); err != nil || timestamp < 0 {
		return "", 0, fmt.Errorf("has the timestamp %q, which is not a number of seconds", text)
	}
	return file, timestamp, nil
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
