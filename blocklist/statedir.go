package blocklist

import (
	"net/url"
	"path/filepath"
	"strings"
)

// The names in a state directory, and in a list's directory there.
const (
	keyName      = "lists.key"
	workName     = "work"
	segmentName  = "current.seg"
	stampsName   = "current.json"
	bitsName     = "current.bits"
	acceptedName = "accepted"
	historyName  = "history"

	// In the history of a list, the version that is being kept.
	unfinishedName = ".new"

	// Small files before they are in their places.
	newPattern = ".new-*"
)

// ListDir is where a state directory keeps what belongs to a list. Names that
// are no names of files are written with percent signs, as in URLs.
func ListDir(stateDir, list string) string {
	name := url.PathEscape(list)
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:]
	}
	return filepath.Join(stateDir, "lists", name)
}
