package listfile

import "strings"

// CutComment cuts a line of a plain list before the # of its trailing comment.
// Without one the whole line is the entry. A line that is nothing but a comment
// is not for it.
func CutComment(line string) (entry, comment string) {
	if at := commentStart(line); at >= 0 {
		return line[:at], line[at:]
	}
	return line, ""
}

// ParseLine reads one line of a plain list as Read does. It says false where the
// line has no entry: it is empty, a comment, or invalid. An entry whose time is
// over is one nevertheless.
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
