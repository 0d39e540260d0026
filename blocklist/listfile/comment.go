package listfile

import "strings"

// CutComment cuts a line of a plain list before the # of its trailing comment.
// Without a comment the whole line is the entry. The line must not be a comment
// line.
func CutComment(line string) (entry, comment string) {
	if at := commentStart(line); at >= 0 {
		return line[:at], line[at:]
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
