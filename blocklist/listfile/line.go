package listfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Line is a line of a plain list with an entry.
type Line struct {
	// Text is the entry without its comment; in a list with lines for recipients both
	// sides.
	Text string

	// Reason and Note are its comment. Until, if not empty, is its expiry as in a
	// list: a date or a time (RFC 3339).
	Reason, Note, Until string
}

// String returns the line without its end, as edits write it.
func (n Line) String() string { return n.Text + n.comment("  ") }

// comment returns the comment, with a gap before it.
func (n Line) comment(gap string) string {
	var b strings.Builder
	if n.Until != "" || n.Reason != "" {
		b.WriteString(gap + "#")
		if n.Until != "" {
			b.WriteString(" " + untilWord + n.Until)
		}
		if n.Reason != "" {
			b.WriteString(" " + n.Reason)
		}
		gap = " "
	}
	if n.Note != "" {
		b.WriteString(gap + "## " + n.Note)
	}
	return b.String()
}

// CheckLength refuses a line that is too long for a list.
func (n Line) CheckLength() error {
	over := len(n.String()) - MaxLine
	if over <= 0 {
		return nil
	}
	return fmt.Errorf("%.100q: with reason and note its line has %d bytes more than the %d that a list reads: shorten them", strings.TrimSpace(n.Text), over, MaxLine)
}

// checkEnd refuses an end that lists and JSON cannot have: the last year of RFC 3339 is 9999.
func (n Line) checkEnd() error {
	if n.Until == "" {
		return nil
	}
	if until, err := ParseUntil(n.Until); err == nil && time.Unix(until, 0).UTC().Year() <= 9999 {
		return nil
	}
	return fmt.Errorf("the end %s is not before the year 10000 (a day counts to its end): leave it out for an entry that counts for good", n.Until)
}

// Parse parses the entry's line as a list does.
func (n Line) Parse(o Options) (Entry, error) {
	for _, c := range []struct{ name, text string }{{"reason", n.Reason}, {"note", n.Note}} {
		if strings.IndexFunc(c.text, unicode.IsControl) >= 0 {
			return Entry{}, fmt.Errorf("the %s contains a line end or another control character: write it on one line", c.name)
		}
	}
	if strings.Contains(n.Reason, "##") {
		return Entry{}, errors.New("the reason contains ##, which begins the private note: give the note separately")
	}
	if slices.ContainsFunc(strings.Fields(n.Reason), func(word string) bool { return strings.HasPrefix(word, "until=") }) {
		if n.Until == "" {
			return Entry{}, errors.New("the reason contains until=, which sets an expiry: give the time separately")
		}
		return Entry{}, errors.New("the reason contains until=, which sets an expiry: the end is given separately already, so remove until= from the reason")
	}
	want, err := ParseEntry(n.Text, o)
	if err != nil {
		return want, err
	}
	if err := n.checkEnd(); err != nil {
		return want, err
	}
	if err := n.CheckLength(); err != nil {
		return want, err
	}
	got, ok := ParseLine(n.String(), o)
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

// CutComment cuts a line of a plain list before the # of its trailing comment.
// Without a comment the whole line is the entry. The line must not be a comment
// line.
func CutComment(line string) (entry, comment string) {
	if pos := commentStart(line); pos >= 0 {
		return line[:pos], line[pos:]
	}
	return line, ""
}

// ParseLine parses one line of a plain list, and reports whether it has an entry,
// expired or not. It has none if it is empty, a comment or invalid.
func ParseLine(line string, o Options) (e Entry, ok bool) {
	if strings.ContainsAny(line, "\n\x00") {
		return Entry{}, false
	}
	o.Format, o.Now = Plain, 1
	g, err := grammarOf(Plain)
	if err != nil {
		return Entry{}, false
	}
	out := newOutput(o, func(found Entry) error {
		e, ok = found, true
		return nil
	}, nil)
	text, long := head(line)
	out.take(g, 0, text, long)
	return e, ok && out.err == nil
}

// FirstWords calls each with the first word of every line that is neither empty nor a comment,
// until it returns false, so that the source of a Postfix table is a file of words, too: what
// follows a word is ignored, and so is a line that begins with white space after one that has
// more than a word. A line that is too long has an error and no word.
func FirstWords(r io.Reader, each func(line int, word string, err error) bool) error {
	in := bufio.NewReaderSize(r, MaxLine)
	hasValue := false
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		tooLong := err == bufio.ErrBufferFull
		for err == bufio.ErrBufferFull {
			_, err = in.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return err
		}
		text, _ := head(string(line))
		word, rest := cutPattern(strings.TrimSpace(text))
		more := true
		switch {
		case tooLong:
			more = each(n, "", fmt.Errorf("the line has more than %d bytes", MaxLine))
		case word == "" || word[0] == '#', hasValue && isBlank(text[0]):
		default:
			hasValue = rest != "" && rest[0] != '#'
			more = each(n, word, nil)
		}
		if !more || err == io.EOF {
			return nil
		}
	}
}

const (
	untilWord = "until="
	untilHint = "write until=2026-12-31 or until=2026-12-31T18:00:00Z"
)

// errUntil is an invalid expiry.
type errUntil string

func (e errUntil) Error() string { return fmt.Sprintf("%s%s is not a time", untilWord, string(e)) }

// takeUntil removes the expiry from a comment, and returns it, or 0 if there is
// none.
func takeUntil(comment string) (rest string, until int64, err error) {
	if !strings.Contains(comment, untilWord) {
		return comment, 0, nil
	}
	words := strings.Fields(comment)
	kept := words[:0]
	for _, w := range words {
		value, ok := strings.CutPrefix(w, untilWord)
		if !ok {
			kept = append(kept, w)
			continue
		}
		t, err := ParseUntil(value)
		if err != nil {
			return "", 0, err
		}
		if until == 0 || t < until {
			until = t // the earlier of two
		}
	}
	if until == 0 {
		return comment, 0, nil // as in "the-until=sign"
	}
	return strings.Join(kept, " "), until, nil
}

// ParseUntil parses an expiry: a time as in RFC 3339, or a date, which means the
// end of that day in UTC. It returns seconds since 1970, never 0.
func ParseUntil(s string) (int64, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return max(1, day.AddDate(0, 0, 1).Unix()), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, errUntil(s)
	}
	return max(1, t.Unix()), nil
}

// FormatUntil formats an expiry as ParseUntil parses it; "" means that there is none.
func FormatUntil(until int64) string {
	if until == 0 {
		return ""
	}
	return time.Unix(until, 0).UTC().Format(time.RFC3339)
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
