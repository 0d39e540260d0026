package listfiles

import (
	"fmt"

	"spamgate/blocklist/listfile"
	"spamgate/internal/term"
)

// EntryInfo is an entry with its place, as commands print it in JSON.
type EntryInfo struct {
	List      string `json:"list,omitempty"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	For       string `json:"for,omitempty"` // the recipients for whom the entry counts
	Entry     string `json:"entry"`         // in normal form
	Kind      string `json:"kind"`
	Exception bool   `json:"exception,omitempty"`
	Until     string `json:"until,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Note      string `json:"note,omitempty"`
}

func NewEntryInfo(list, file string, e listfile.Entry) EntryInfo {
	return EntryInfo{list, file, e.Line, e.For, withSign(e), e.Kind.String(), e.Exception, listfile.FormatUntil(e.Until), e.Reason, e.Note}
}

// String formats the entry for people.
func (e EntryInfo) String() string {
	return fmt.Sprintf("%s in list %s, %s%s", e.Text(), e.List, e.Place(), term.InBrackets(e.Reason))
}

func (e EntryInfo) Place() string { return fmt.Sprintf("%s:%d", term.ShortPath(e.File), e.Line) }

// Text returns the entry as a list shows it, after the recipient for whom it counts.
func (e EntryInfo) Text() string { return sides(e.For, e.Entry) }

// Written returns an entry in normal form, as a list shows it, after the recipient for whom it
// counts.
func Written(e listfile.Entry) string { return sides(e.For, withSign(e)) }

// withSign returns an entry in normal form without the recipient.
func withSign(e listfile.Entry) string {
	if e.Exception {
		return "!" + e.Key
	}
	return e.Key
}

func sides(recipient, entry string) string {
	if recipient == "" {
		return entry
	}
	return recipient + " " + entry
}

// Described returns the text of a change of an entry for the audit log: "added spam.example
// until 2026-12-31T00:00:00Z".
func Described(what string, e listfile.Entry) string {
	what += " " + Written(e)
	if e.Until != 0 {
		what += " until " + listfile.FormatUntil(e.Until)
	}
	return what
}
