package header

import "bytes"

// Size is how long something in a header section is, and the field that it is part of.
type Size struct {
	Field string // as the caller names it
	Bytes int
}

// sizes finds the longest field and the longest line of a section.
type sizes struct {
	field, line Size
	present     int // the size of the present field so far
}

// add adds the lines that the splitter has read for a field. A malformed line counts to the
// field above it, since some readers take it for a continuation. So a field reaches from the
// line in which its name begins to the line before the next field, without the last line end.
// Every other line end counts as two bytes: the message may go on with CRLF.
func (z *sizes) add(field string, s *splitter) {
	if !s.lost {
		z.present = -len("\r\n")
	}
	for line := range bytes.Lines(s.lines) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		z.present += len(line) + len("\r\n")
		if len(line) > z.line.Bytes {
			z.line = Size{field, len(line)}
		}
	}
	if z.present > z.field.Bytes {
		z.field = Size{field, z.present}
	}
}
