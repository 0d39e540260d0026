package wire

import "bytes"

// newlines is the state of bare CRs and LFs in a message.
type newlines struct {
	normalize bool   // replace them, rather than refuse the message
	noticed   bool   // Config.Noticed was called for this message
	afterLF   bool   // DATA: the last byte was a bare LF
	afterCR   bool   // DATA: the last line ended in CR CRLF
	cutCR     bool   // DATA: the part of an unfinished line that was passed on ends in CR
	out       []byte // the buffer for normalized pieces
}

var (
	crlf   = []byte("\r\n")
	crcrlf = []byte("\r\r\n")
	space  = []byte(" ")
)

// normalizes reports whether to replace a bare CR or LF. If not, it breaks the rule.
func (b *Body) normalizes() bool {
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

// endLine notes the end of a line of DATA. Line is the line, or the rest of it that was
// not passed on yet.
func (n *newlines) endLine(line []byte) {
	n.afterCR = bytes.HasSuffix(line, crcrlf) || n.cutCR && bytes.Equal(line, crlf)
	n.cutCR = false
}

// bareCR returns the replacement of a bare CR that was held back.
func (b *Body) bareCR() []byte {
	if !b.normalizes() {
		return nil
	}
	return space
}

// normalizeText normalizes a piece with a bare CR or LF in or before it, which does not
// end in a CR: each bare LF becomes a CRLF, each bare CR a space. With stuffed, it also
// returns how many of the dots in the result are stuffing.
//
// In the piece only lines after CRLF are stuffed. So normalizeText stuffs a line after
// a former bare LF, and a line of one dot before a bare LF becomes empty. Nothing can
// end the message that did not end it as received.
func (b *Body) normalizeText(piece []byte, atStart, stuffed bool) (out []byte, dots int) {
	n := &b.newlines
	out = n.out[:0]
	for len(piece) > 0 {
		line, ending := cutLine(piece)
		piece = piece[len(line)+len(ending):]
		if stuffed && len(line) > 0 && line[0] == '.' {
			switch {
			case n.afterLF:
				out = append(out, '.')
				dots++
			case atStart && len(line) == 1 && len(ending) == 1:
				line = nil
			case atStart:
				dots++
			}
		}
		out = appendLine(out, line, ending)
		atStart, n.afterLF = len(ending) == 2, len(ending) == 1
	}
	n.out = out
	return out, dots
}

// cutLine returns the first line of text, and the CRLF or LF after it.
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

// appendLine appends a line, with a space for each CR in it, and CRLF if it has an
// ending.
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
