package blocklist

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// ErrNotFetched is wrapped where a list comes from a URL and there is no copy of
// it yet. Use errors.Is.
var ErrNotFetched = errors.New("not fetched yet")

// missing says of a file that is not there where it could come from.
func (s *source) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := shellWord(s.list.Name)
	switch {
	case s.list.URL != "" && s.live.good == nil:
		return fmt.Errorf("%w: spamgate lists fetch %s", ErrNotFetched, name)
	case s.list.URL != "":
		return fmt.Errorf("%w; spamgate lists fetch %s fetches it again", err, name)
	case s.state.keeps(s.list.Name):
		return fmt.Errorf("%w; versions are kept: spamgate lists rollback %s puts the last one back", err, name)
	}
	return err
}

// keeps reports whether there are versions of a list in its history.
func (s *state) keeps(list string) bool {
	dir := s.listDir(list)
	if dir == "" {
		return false
	}
	names, err := historyNames(filepath.Join(dir, historyName))
	return err == nil && len(names) > 0
}

// shellWord is a name as it is written in a shell.
func shellWord(name string) string {
	if strings.ContainsAny(name, " '\"\\$`*?[]()<>|&;#~!{}") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

// unusable says that a list has no version to serve. One that serves does not go
// on with what it has once its settings are others: as an allow list's, say, the
// same entries would mean something else.
func unusable(l *List, serves bool, err error, readOnly bool) error {
	if serves {
		return fmt.Errorf("list %q has no usable version with its new settings: %w; until then the gate goes on with the old configuration, and with what the list has now", l.Name, err)
	}
	return fmt.Errorf("list %q has no usable version: %w (%s)", l.Name, err, wayOut(err, readOnly))
}

// wayOut says what to do about a list that nothing serves.
func wayOut(err error, readOnly bool) string {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return "optional = true would start without it"
	case readOnly: // somebody asks, who need not be the user that serves
		return "run it as root or as the gate's user"
	}
	return "let the gate's user read it"
}
