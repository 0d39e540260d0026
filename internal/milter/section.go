package milter

import "bytes"

// section collects the header of a message.
type section struct {
	text     []byte // lines that end in LF
	limit    int
	tooLarge bool
}

// reset empties the section.
func (s *section) reset() {
	if cap(s.text) > keptBuffer {
		s.text = nil
	}
	s.text, s.tooLarge = s.text[:0], false
}

// add adds a field as the mail server has sent it: a folded value has LF or CRLF in it. Spaced
// says that the value begins after the colon, and not after the space.
//
// A CR alone is a line's end for some servers and nothing for others, so that a field with one
// is added in both readings.
func (s *section) add(name, value []byte, spaced bool) {
	value = bytes.TrimSuffix(value, []byte{0})
	size := len(name) + len(": \n") + len(value)
	if s.tooLarge || len(s.text)+size > s.limit {
		s.text, s.tooLarge = nil, true
		return
	}
	s.append(name, value, spaced)
	if hasLoneCR(value) {
		s.append(name, bytes.ReplaceAll(value, []byte("\r"), []byte("\n")), spaced)
	}
}

func (s *section) append(name, value []byte, spaced bool) {
	s.text = append(s.text, name...)
	s.text = append(s.text, ':')
	if !spaced {
		s.text = append(s.text, ' ')
	}
	s.text = append(s.text, value...)
	s.text = append(s.text, '\n')
}

// hasLoneCR reports whether a CR without LF after it is in the text.
func hasLoneCR(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\r')
		if i < 0 {
			return false
		}
		if text = text[i+1:]; len(text) == 0 || text[0] != '\n' {
			return true
		}
	}
}
