package decisions

import (
	"math"
	"slices"
	"sort"
	"time"
)

// search walks through one file from its newest to its oldest row that may match.
type search struct {
	reader *Reader
	query  *Query
	before place // a bound: rows are before it
	file   file
	f      *readFile // nil until it is opened

	low, high int64 // rows that are in question
	sections  []section
	clauses   [][]term

	found []int64 // candidates, the oldest first
	next  place   // of the next candidate, or a place after which there are none
	done  bool
}

// section is a number of rows with their postings: an entry of the table recent, or a block.
type section struct {
	first, count  int64
	postings      []byte // of an entry of recent
	buckets, base int64  // of a block
}

// newSearch returns the search of one file. It does not open it yet.
func newSearch(r *Reader, file file, q *Query, before place) *search {
	s := &search{reader: r, query: q, before: before, file: file}
	s.next = place{file.end(), file.number, math.MaxInt64 - 1}
	if before.before(s.next) {
		s.next = before
		s.next.n--
	}
	s.done = !q.Since.IsZero() && file.end() <= q.Since.UnixNano()
	return s
}

func (s *search) close() {
	if s.f != nil {
		s.reader.release(s.f)
	}
}

// open opens the file and finds out which rows are in question, and with sections also which sections.
func (s *search) open(sections bool) (err error) {
	if s.f, err = s.reader.open(s.file); err != nil {
		if err == errSkip {
			s.done, err = true, nil
		}
		return err
	}
	ends, err := s.f.statement(selectLast)
	if err != nil {
		return err
	}
	if _, err := ends.Step(); err != nil {
		return err
	}
	last, skew := ends.Int(0), ends.Int(1)
	ends.Reset()
	s.low, s.high = 1, last
	if s.high, err = s.after(s.before, last); err != nil {
		return err
	}
	if !s.query.Since.IsZero() {
		n, err := s.after(place{offset: s.query.Since.UnixNano()}, last)
		if err != nil {
			return err
		}
		s.low = n + 1
	}
	if !s.query.Until.IsZero() {
		n, err := s.after(place{offset: s.query.Until.UnixNano() + skew*int64(time.Second)}, last)
		if err != nil {
			return err
		}
		s.high = min(s.high, n)
	}
	s.clauses = s.query.clauses(s.f.seed)
	if sections && s.low <= s.high {
		return s.readSections()
	}
	return nil
}

// after returns the number of the newest row before a place, of rows 1 to last; 0 if there is none.
func (s *search) after(p place, last int64) (int64, error) {
	var err error
	isAfter := func(i int) bool {
		offset, e := s.time(int64(i) + 1)
		if e != nil {
			err = e
		}
		return err != nil || !place{offset, s.file.number, int64(i) + 1}.before(p)
	}
	switch { // most files are searched as a whole; each row that is looked at may be a page to read
	case last == 0 || isAfter(0):
		return 0, err
	case !isAfter(int(last) - 1):
		return last, err
	}
	n := sort.Search(int(last), isAfter)
	return int64(n), err
}

// time returns the time of a row.
func (s *search) time(n int64) (int64, error) {
	offset, found, err := s.f.int(selectAt, n)
	if err == nil && !found {
		err = errMissing
	}
	return offset, err
}

// readSections reads which sections there are, the oldest first.
func (s *search) readSections() error {
	for _, sql := range []string{selectBlocks, selectRecent} {
		list, err := s.f.statement(sql, s.low, s.high)
		if err != nil {
			return err
		}
		for {
			row, err := list.Step()
			if err != nil {
				return err
			}
			if !row {
				break
			}
			s.sections = append(s.sections, section{list.Int(0), list.Int(1), slices.Clone(list.Blob(4)), list.Int(2), list.Int(3)})
		}
	}
	return nil
}

// advance finds the next candidates: it looks at one section, and sets next.
func (s *search) advance() (err error) {
	switch {
	case s.low > s.high:
		s.done = true
		return nil
	case len(s.clauses) == 0:
		first := max(s.low, s.high-127)
		for n := first; n <= s.high; n++ {
			s.found = append(s.found, n)
		}
		s.high = first - 1
	case len(s.sections) == 0:
		s.done = true
		return nil
	default:
		section := s.sections[len(s.sections)-1]
		s.sections = s.sections[:len(s.sections)-1]
		if s.found, err = s.candidates(section); err != nil {
			return err
		}
		s.high = section.first - 1
	}
	return s.setNext()
}

// setNext sets next to the place of the next candidate, or of the next section.
func (s *search) setNext() error {
	n := s.high
	if len(s.found) > 0 {
		n = s.found[len(s.found)-1]
	}
	if n < s.low {
		s.done = true
		return nil
	}
	offset, err := s.time(n)
	s.next = place{offset, s.file.number, n}
	return err
}

// candidates returns the rows of a section that have the wanted terms, the oldest first.
func (s *search) candidates(section section) ([]int64, error) {
	var rows []uint32
	for i, clause := range s.clauses {
		have, err := s.rows(section, clause)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			rows = have
		} else {
			rows = intersect(rows, have)
		}
		if len(rows) == 0 {
			return nil, nil
		}
	}
	var found []int64
	for _, row := range rows {
		if n := section.first + int64(row); n >= s.low && n <= s.high {
			found = append(found, n)
		}
	}
	return found, nil
}

// rows returns the rows of a section that have one of the terms.
func (s *search) rows(section section, any []term) (all []uint32, err error) {
	wanted := func(t term) bool { return slices.Contains(any, t) }
	add := func(_ term, rows []uint32) { all = append(all, rows...) }
	if section.postings != nil {
		err = decodePostings(section.postings, wanted, add)
	} else {
		err = s.eachBucket(section, any, func(b []byte) error { return decodePostings(b, wanted, add) })
	}
	if len(any) > 1 {
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return all, err
}

// eachBucket calls f for each bucket of a block that has some of the terms.
func (s *search) eachBucket(section section, any []term, f func([]byte) error) error {
	var buckets []int64
	for _, t := range any {
		buckets = append(buckets, section.base+t.bucket(int(section.buckets)))
	}
	slices.Sort(buckets)
	for _, b := range slices.Compact(buckets) {
		bucket, err := s.f.statement(selectBucket, b)
		if err != nil {
			return err
		}
		found, err := bucket.Step()
		if found {
			err = f(bucket.Blob(0))
		}
		bucket.Reset()
		if err != nil {
			return err
		}
	}
	return nil
}

// intersect returns the numbers that are in both of two sorted slices. It overwrites the first.
func intersect(a, b []uint32) []uint32 {
	both := a[:0]
	for _, v := range a {
		for len(b) > 0 && b[0] < v {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == v {
			both = append(both, v)
		}
	}
	return both
}

// step takes the next candidate, and returns it if it matches.
func (s *search) step() (d Decision, ok bool, err error) {
	if s.f == nil {
		if err := s.open(s.query.selective()); err != nil || s.done {
			return d, false, err
		}
		return d, false, s.advance()
	}
	if len(s.found) == 0 {
		return d, false, s.advance()
	}
	n := s.found[len(s.found)-1]
	s.found = s.found[:len(s.found)-1]
	if d, err = s.f.get(n); err != nil {
		return d, false, err
	}
	ok = s.query.Match(&d) && s.query.Cut(&d)
	return d, ok, s.setNext()
}
