package store

import (
	"errors"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"spamgate/internal/atomicfile"
)

// The names in a state directory, and in a list's directory there.
const (
	keyName      = "lists.key"
	workName     = "work"
	listsName    = "lists"
	segmentName  = "current.seg"
	stampsName   = "current.json"
	bitsName     = "current.bits"
	acceptedName = "accepted"
	pinName      = "pinned"
	servedName   = "served"
	historyName  = "history"
	buildingName = "building"

	// In the history of a list, the version that is being kept.
	unfinishedName = ".new"

	// What is appended to the name of a file that is set aside: another version of the
	// program has made it, most likely a newer one, and this one does not understand it.
	asideSuffix = ".aside"

	// Small files before they are in their places.
	newPattern = ".new-*"
)

// ListName returns the name of the directory in the state directory that keeps what belongs to a
// list. Characters that a file name cannot have are percent-encoded, as in URLs.
func ListName(list string) string {
	name := url.PathEscape(list)
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:]
	}
	return path.Join(listsName, name)
}

// HasServed reports whether a state directory keeps a version of a list: its index, or one in
// the history.
func HasServed(stateDir, list string) (bool, error) {
	tree, dir := atomicfile.In(stateDir), ListName(list)
	_, err := tree.Stat(path.Join(dir, segmentName))
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	names, err := historyNames(tree, path.Join(dir, historyName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return len(names) > 0, err
}
