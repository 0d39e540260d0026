package wire

import "bytes"

// newlines is what becomes of bare CRs and LFs in a message.
type newlines struct {
	normalize bool   // they are replaced, not refused
	noticed   bool   // Config.Noticed has heard of this message
	behindLF  bool   // DATA: the last byte was a bare LF
	behindCR  bool   // DATA: the last line ended in CR CRLF
	cutCR     bool   // DATA: what was passed on of an unfinished line ends in CR
	out       []byte // room for what a piece becomes
}

var (
	crlf   = []byte("\r\n")
	crcrlf = []byte("\r\r\n")
	space  = []byte(" ")
)

// mendsNewlines reports whether the bare CR or LF that was found is to be
// replaced. Where it is not, it breaks the rule.
func (b *Body) mendsNewlines() bool {
	n := &b.newlines
	if !n.normalize {
		b.breakRule(ErrBareNewline)
		return false
	}
	if !n.noticed && b.c.cfg.Noticed != nil {
		b.c.cfg.Noticed(b.c, "bare newlines normalised")
	}
	n.noticed = true
	return true
}

// endLine takes notice of how a line of DATA ends, of which line is all, or what
// was not passed on yet.
func (n *newlines) endLine(line []byte) {
	n.behindCR = bytes.HasSuffix(line, crcrlf) || n.cutCR && bytes.Equal(line, crlf)
	n.cutCR = false
}

// bareCR is what becomes of a bare CR that has been held back.
func (b *Body) bareCR() []byte {
	if !b.mendsNewlines() {
		return nil
	}
	return space
}

// mendData takes a piece of DATA in or before which there is a bare CR or LF, and
// which does not end in a CR, the first half of a CRLF maybe. It returns what the
// piece becomes: each bare LF a CRLF, each bare CR a space. The dots are those of
// that which are stuffing.
//
// In the piece the lines are those that end in CRLF, and so is their stuffing. A
// line that begins behind a former bare LF is stuffed here, and one that is a dot
// in front of a bare LF is empty once the stuffing is removed. So nothing ends
// the message that did not end it as it came.
func (b *Body) mendData(piece []byte, atStart bool) (out []byte, dots int) {
	n := &b.newlines
	out = n.out[:0]
	for len(piece) > 0 {
		line, ending := cutLine(piece)
		piece = piece[len(line)+len(ending):]
		if len(line) > 0 && line[0] == '.' {
			switch {
			case n.behindLF:
				out = append(out, '.')
				dots++
			case atStart && len(line) == 1 && len(ending) == 1:
				line = nil
			case atStart:
				dots++
			}
		}
		out = appendLine(out, line, ending)
		atStart, n.behindLF = len(ending) == 2, len(ending) == 1
	}
	n.out = out
	return out, dots
}

// mendChunk is mendData for a piece of a chunk, which has no stuffing.
func (b *Body) mendChunk(piece []byte) []byte {
	out := b.newlines.out[:0]
	for len(piece) > 0 {
		line, ending := cutLine(piece)
		piece = piece[len(line)+len(ending):]
		out = appendLine(out, line, ending)
	}
	b.newlines.out = out
	return out
}

// cutLine returns the first line of text, and the CRLF or LF behind it.
func cutLine(text []byte) (line, ending []byte) {
	i := bytes.IndexByte(text, '\n')
	switch {
	case i < 0:
		return text, nil
	case i > 0 && text[i-1] == '\r':
		return text[:i-1], text[i-1 : i+1]
	}
	return text[:i], text[i : i+1]
}

// appendLine appends a line, with a space for each CR in it, and CRLF where it
// has an ending.
func appendLine(out, line, ending []byte) []byte {
	for {
		i := bytes.IndexByte(line, '\r')
		if i < 0 {
			break
		}
		out = append(append(out, line[:i]...), ' ')
		line = line[i+1:]
	}
	out = append(out, line...)
	if len(ending) > 0 {
		out = append(out, crlf...)
	}
	return out
}
