package listfiles

import (
	"fmt"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/term"
)

// EntryInfo is an entry with its place, as commands print it in JSON.
type EntryInfo struct {
	List      string `json:"list,omitempty"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Entry     string `json:"entry"` // in normal form
	Kind      string `json:"kind"`
	Exception bool   `json:"exception,omitempty"`
	Until     string `json:"until,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Note      string `json:"note,omitempty"`
}

func NewEntryInfo(list, file string, e listfile.Entry) EntryInfo {
	return EntryInfo{list, file, e.Line, Written(e), e.Kind.String(), e.Exception, Until(e.Until), e.Reason, e.Note}
}

// String formats the entry for people.
func (e EntryInfo) String() string {
	return fmt.Sprintf("%s in list %s, %s%s", e.Entry, e.List, e.Place(), term.InBrackets(e.Reason))
}

func (e EntryInfo) Place() string { return fmt.Sprintf("%s:%d", term.ShortPath(e.File), e.Line) }

// Written returns an entry in normal form, as a list shows it.
func Written(e listfile.Entry) string {
	text := e.Key
	if e.Exception {
		text = "!" + text
	}
	if e.For != "" {
		text = e.For + " " + text
	}
	return text
}

// Until formats the end of an entry; "" means that it has none.
func Until(until int64) string {
	if until == 0 {
		return ""
	}
	return time.Unix(until, 0).UTC().Format(time.RFC3339)
}
