package listedit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"spamgate/blocklist/listfile"
)

// NewEntry is an entry that is added to a plain list.
type NewEntry struct {
	// Text is the entry without its comment; in a list with lines for recipients both
	// sides.
	Text string

	// Reason and Note are its comment. Until, if not empty, is its expiry as in a
	// list: a date or a time (RFC 3339).
	Reason, Note, Until string
}

// UntilText returns an end as a list has it: a date, if it is the end of a day in UTC.
func UntilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.UTC().Add(time.Second - 1).Truncate(time.Second)
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

// Line returns the entry's line.
func (n NewEntry) Line() string { return n.Text + n.comment() }

// comment returns the comment with the white space before it.
func (n NewEntry) comment() string {
	var b strings.Builder
	if n.Until != "" || n.Reason != "" {
		b.WriteString("  #")
		if n.Until != "" {
			b.WriteString(" until=" + n.Until)
		}
		if n.Reason != "" {
			b.WriteString(" " + n.Reason)
		}
	}
	if n.Note != "" {
		if b.Len() == 0 {
			b.WriteByte(' ')
		}
		b.WriteString(" ## " + n.Note)
	}
	return b.String()
}

// checkLength refuses a line that is too long for a list.
func (n NewEntry) checkLength() error {
	over := len(n.Line()) - listfile.MaxLine
	if over <= 0 {
		return nil
	}
	return fmt.Errorf("%.100q: with reason and note its line has %d bytes more than the %d that a list reads: shorten them", strings.TrimSpace(n.Text), over, listfile.MaxLine)
}

// checkEnd refuses an end that lists and JSON cannot have: the last year of RFC 3339 is 9999.
func (n NewEntry) checkEnd() error {
	if n.Until == "" {
		return nil
	}
	if until, err := listfile.ParseUntil(n.Until); err == nil && time.Unix(until, 0).UTC().Year() <= 9999 {
		return nil
	}
	return fmt.Errorf("the end %s is not before the year 10000 (a day counts to its end): leave it out for an entry that counts for good", n.Until)
}

// Parse parses the entry's line as a list does.
func (n NewEntry) Parse(o listfile.Options) (listfile.Entry, error) {
	for _, c := range []struct{ name, text string }{{"reason", n.Reason}, {"note", n.Note}} {
		if strings.IndexFunc(c.text, unicode.IsControl) >= 0 {
			return listfile.Entry{}, fmt.Errorf("the %s contains a line end or another control character: write it on one line", c.name)
		}
	}
	if strings.Contains(n.Reason, "##") {
		return listfile.Entry{}, errors.New("the reason contains ##, which begins the private note: give the note separately")
	}
	if slices.ContainsFunc(strings.Fields(n.Reason), func(word string) bool { return strings.HasPrefix(word, "until=") }) {
		if n.Until == "" {
			return listfile.Entry{}, errors.New("the reason contains until=, which sets an expiry: give the time separately")
		}
		return listfile.Entry{}, errors.New("the reason contains until=, which sets an expiry: the end is given separately already, so remove until= from the reason")
	}
	want, err := listfile.ParseEntry(n.Text, o)
	if err != nil {
		return want, err
	}
	if err := n.checkEnd(); err != nil {
		return want, err
	}
	if err := n.checkLength(); err != nil {
		return want, err
	}
	got, ok := listfile.ParseLine(n.Line(), o)
	switch {
	case !ok || got.For != want.For || got.Key != want.Key || got.Exception != want.Exception:
		if text := Text(want, o); text != "" && text != strings.TrimSpace(n.Text) {
			return want, fmt.Errorf("%q: a list would read this line otherwise; write %s", n.Text, text)
		}
		return want, fmt.Errorf("%q: a list would read this line otherwise: there is no way to write it", n.Text)
	case got.Reason != strings.TrimSpace(n.Reason) || got.Note != strings.TrimSpace(n.Note):
		return got, fmt.Errorf("a list would read the reason as %q and the note as %q: begin neither with #", got.Reason, got.Note)
	}
	return got, nil
}
