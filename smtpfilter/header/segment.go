package header

// gap is what separates two words. A stronger gap has a greater value.
type gap uint8

const (
	noGap   gap = iota
	markGap     // a comment alone, a quote: some readers see one word, some two
	spaceGap
)

// segment is the text between two @ or separators: words with their dots, without quotes,
// and the gaps between them. The zero segment is empty.
type segment struct {
	buf     []byte // the words, without gaps
	words   []word
	pending gap // after the last word
	marked  bool
}

type word struct {
	start, end int // in buf
	before     gap
	quoted     bool // it is the content of a quoted string
	marked     bool // a mark that is neither space nor a comment is before it
}

func (s *segment) reset() { s.buf, s.words, s.pending, s.marked = s.buf[:0], s.words[:0], noGap, false }

func (s *segment) empty() bool { return len(s.words) == 0 }

func (s *segment) gap(g gap) { s.pending = max(s.pending, g) }

// mark adds a mark that is neither space nor a comment.
func (s *segment) mark(g gap) {
	s.gap(g)
	s.marked = true
}

// add adds text to the present word, or after a gap to a new one.
func (s *segment) add(text string) {
	s.buf = append(s.buf, text...)
	s.touch(len(text))
}

// addQuoted adds the content of a quoted string, without the backslashes of quoted pairs.
// An empty one is a word too. A word next to it may be part of it, as in "a".b@c.example,
// or not, as in "Foo"b@c.example.
func (s *segment) addQuoted(text string) {
	s.mark(markGap)
	n := len(s.buf)
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		s.buf = append(s.buf, text[i])
	}
	s.touch(len(s.buf) - n)
	s.words[len(s.words)-1].quoted = true
	s.mark(markGap)
}

// touch adds the last n bytes of buf to a word.
func (s *segment) touch(n int) {
	if len(s.words) == 0 || s.pending != noGap {
		start := len(s.buf) - n
		s.words = append(s.words, word{start: start, end: start, before: s.pending, marked: s.marked})
		s.pending, s.marked = noGap, false
	}
	s.words[len(s.words)-1].end = len(s.buf)
}

// joins reports whether a reader may take words i-1 and i as one: only a mark is between
// them, or space beside a dot, as in obs-local-part and obs-domain (RFC 5322, section 4.4).
func (s *segment) joins(i int) bool {
	return s.words[i].before == markGap || s.besideDot(i)
}

// besideDot reports whether a dot is beside the gap before word i.
func (s *segment) besideDot(i int) bool {
	last, next := s.words[i-1], s.words[i]
	return last.end > last.start && s.buf[last.end-1] == '.' ||
		next.end > next.start && s.buf[next.start] == '.'
}

// joinsForm is joins for forms: servers ignore space beside the operators "%" and "!".
func (s *segment) joinsForm(i int) bool {
	return s.joins(i) || s.besideRoute(i)
}

// besideRoute reports whether an operator is beside the gap before word i.
func (s *segment) besideRoute(i int) bool {
	last, next := s.words[i-1], s.words[i]
	return last.end > last.start && isRoute(s.buf[last.end-1]) ||
		next.end > next.start && isRoute(s.buf[next.start])
}

// routeSpaced reports whether an operator has space beside it in words[from:to].
func (s *segment) routeSpaced(from, to int) bool {
	for i := from + 1; i < to; i++ {
		if s.words[i].before == spaceGap && s.besideRoute(i) {
			return true
		}
	}
	return false
}

// isOneForm reports whether all words may be one form.
func (s *segment) isOneForm() bool {
	for i := 1; i < len(s.words); i++ {
		if !s.joinsForm(i) {
			return false
		}
	}
	return true
}

// isRun reports whether all words may be one.
func (s *segment) isRun() bool { return s.empty() || s.headLen() == len(s.words) }

func isRoute(c byte) bool { return c == '%' || c == '!' }

// text returns the text of words[from:to], without gaps.
func (s *segment) text(from, to int) []byte { return s.buf[s.words[from].start:s.words[to-1].end] }

// spaced returns all words, with a space between those that are not one form.
func (s *segment) spaced() []byte {
	b := make([]byte, 0, len(s.buf)+len(s.words))
	for i, w := range s.words {
		if i > 0 && !s.joinsForm(i) {
			b = append(b, ' ')
		}
		b = append(b, s.buf[w.start:w.end]...)
	}
	return b
}

// toMark returns the number of words before a mark.
func (s *segment) toMark() int {
	n := 1
	for n < len(s.words) && !s.words[n].marked {
		n++
	}
	return n
}

// dotted returns all words, with a dot between two that have no dot, quote or operator there.
func (s *segment) dotted() []byte {
	b := make([]byte, 0, len(s.buf)+len(s.words))
	for i, w := range s.words {
		if i > 0 && !w.quoted && !s.words[i-1].quoted && !s.besideDot(i) && !s.besideRoute(i) {
			b = append(b, '.')
		}
		b = append(b, s.buf[w.start:w.end]...)
	}
	return b
}

// headLen returns the number of words in the run of head.
func (s *segment) headLen() int {
	k := 1
	for k < len(s.words) && s.joins(k) {
		k++
	}
	return k
}

// tailStart returns the index of the first word in the run of tail.
func (s *segment) tailStart() int {
	k := len(s.words) - 1
	for k > 0 && s.joins(k) {
		k--
	}
	return k
}

// head returns the first word, and the run of first words that may be one.
func (s *segment) head() (first, run []byte) {
	return s.buf[:s.words[0].end], s.buf[:s.words[s.headLen()-1].end]
}

// tail returns the last word, and the run of last words that may be one. Both are nil for
// an empty segment.
func (s *segment) tail() (last, run []byte) {
	if s.empty() {
		return nil, nil
	}
	last = s.buf[s.words[len(s.words)-1].start:]
	return last, s.buf[s.words[s.tailStart()].start:]
}
