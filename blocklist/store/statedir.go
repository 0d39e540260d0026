package store

import (
	"net/url"
	"path"
	"strings"
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
