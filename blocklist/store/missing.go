package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// ErrNotFetched is wrapped if a list comes from a URL and there is no copy of it yet. Use
// errors.Is.
var ErrNotFetched = errors.New("not fetched yet")

// missing adds to the error for a missing file how to restore the file.
func (s *source) missing(err error) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case s.list.URL != "" && s.live.good == nil:
		return s.advise(ErrNotFetched, FetchFirst)
	case s.list.URL != "":
		return s.advise(err, FetchAgain)
	case s.state.keeps(s.list.Name):
		return s.advise(err, RestoreFiles)
	}
	return err
}

// begins reports whether missing files mean that the list is still empty: see [List.Begins].
func (s *source) begins(err error) bool {
	if !s.list.Begins || !errors.Is(err, fs.ErrNotExist) || s.live.good != nil && s.live.good != emptyVersion {
		return false
	}
	served, err := HasServed(s.state.dir, s.list.Name)
	return err == nil && !served
}

// keeps reports whether the history has versions of a list.
func (s *state) keeps(list string) bool {
	if !s.keeping() {
		return false
	}
	names, err := historyNames(s.tree, path.Join(ListName(list), historyName))
	return err == nil && len(names) > 0
}

// UnusableError says that a list has no version to serve. [Open], [Build] and [Store.Reload]
// join one for each such list.
type UnusableError struct {
	List string

	// Serves reports whether the list serves with other settings: a reload has
	// failed.
	Serves bool

	// Err says what is wrong with the list's files, and WayOut what to do if they
	// cannot be mended.
	Err    error
	WayOut string
}

// Error names the list, what is wrong and the way out.
func (e *UnusableError) Error() string {
	if e.Serves {
		return fmt.Sprintf("list %q has no usable version with its new settings: %v; until then %s", e.List, e.Err, e.WayOut)
	}
	return fmt.Sprintf("list %q has no usable version: %v (%s)", e.List, e.Err, e.WayOut)
}

// Unwrap returns Err.
func (e *UnusableError) Unwrap() error { return e.Err }

// unusable returns the error of a list that has no version to serve. A list does not go on
// with what it serves once its settings have changed: in an allow list, for example, the
// same entries would mean something else.
func unusable(l *List, serves bool, err error, readOnly bool) error {
	e := &UnusableError{List: l.Name, Serves: serves, Err: err, WayOut: "the gate goes on with the old configuration, and with what the list has now"}
	if !serves {
		e.WayOut = wayOut(err, readOnly)
	}
	return e
}

// wayOut returns what to do about a list that has nothing to serve.
func wayOut(err error, readOnly bool) string {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return "optional = true would start without it"
	case readOnly: // somebody asks, who need not be the user that serves
		return "run it as root or as the gate's user"
	}
	return "let the gate's user read it"
}
