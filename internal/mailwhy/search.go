package mailwhy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/internal/logging"
)

// Query says what to look for.
type Query struct {
	ID string // of a message, or
	Address

	Since time.Time // lines before it do not count
	Most  int       // how many messages to keep: the newest
}

// Address is a mail address as a log may show it.
type Address struct {
	Text   string // as asked for, without "<>"; "" with Null
	Null   bool   // the null sender, <>
	normal string // the normal form, if there is one
	hash   string // "" if the key is not known
	domain string // "*@" and its domain
}

// NewAddress returns an address to look for. Hash returns the address as a log with
// [log] addresses = "hash" shows it; nil: there is none.
func NewAddress(text string, hash func(string) string) (Address, error) {
	if text == "<>" {
		return Address{Null: true}, nil
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
	a, err := sender.Parse(text)
	if err != nil {
		return Address{}, err
	}
	q := Address{Text: text, normal: a.String()}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		q.domain = "*" + text[at:]
	}
	if hash != nil {
		q.hash = hash(text)
	}
	return q, nil
}

// How a logged address can match.
type matched int

const (
	not      matched = iota
	byDomain         // the log shows the domain only
	whole
)

// match compares with an address from the log, without "<>".
func (a *Address) match(logged string) matched {
	switch {
	case a.Null && logged == "":
		return whole
	case a.Null, logged == "":
		return not
	case strings.EqualFold(logged, a.Text), logged == a.hash:
		return whole
	case strings.EqualFold(logged, a.domain):
		return byDomain
	}
	if len(logged) == len(a.hash) && !strings.Contains(logged, "@") {
		return not // another's hash
	}
	if parsed, err := sender.Parse(logged); err == nil && parsed.String() == a.normal {
		return whole
	}
	return not
}

// Role is what an address is in a line.
type Role int

// The roles of an address.
const (
	Sender Role = 1 << iota // in the envelope or in the header
	Recipient
)

// in returns the best match of the address in a record, and its roles.
func (a *Address) in(r *Record) (best matched, roles Role) {
	look := func(logged string, role Role) {
		if m := a.match(bare(logged)); m != not {
			best = max(best, m)
			roles |= role
		}
	}
	if from := r.Get("from"); from != "" {
		look(from, Sender)
	}
	for _, key := range []string{"sender", "by_way_of"} {
		if s := r.Get(key); s != "" {
			look(s, Sender)
		}
	}
	if a.Null {
		return best, roles
	}
	for _, to := range Recipients(r) {
		look(to, Recipient)
	}
	// A refused command has no message yet: MAIL FROM:<a@b> SIZE=1
	if verb, path, ok := strings.Cut(r.Get("command"), ":"); ok {
		role := Sender
		if strings.HasPrefix(strings.ToUpper(verb), "RCPT") {
			role = Recipient
		}
		if path, _, _ = strings.Cut(strings.TrimSpace(path), " "); path != "" {
			look(path, role)
		}
	}
	return best, roles
}

func bare(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">") }

// Recipients returns the recipients in a record, as far as the line has them.
func Recipients(r *Record) []string {
	to := r.Get("to")
	if i := strings.LastIndex(to, "> and "); i >= 0 && strings.HasSuffix(to, " more") {
		to = to[:i+1]
	}
	if to == "" {
		return nil
	}
	all := strings.Split(to, ">,<")
	for i := range all {
		all[i] = bare(all[i])
	}
	return all
}

// needles returns texts of which a line has at least one, in lower case, if the address is in
// it; nil: any line may have it, since logs escape some characters.
func (a *Address) needles() [][]byte {
	if a.Null {
		return [][]byte{[]byte("from=<>"), []byte(`"from":"<>"`)}
	}
	plain := !strings.ContainsFunc(a.Text, func(r rune) bool { return r < '!' || r > '~' || strings.ContainsRune(`"\'=`, r) }) &&
		strings.EqualFold(a.Text, a.normal) && !strings.Contains(a.normal, "xn--")
	if !plain {
		return nil
	}
	var all [][]byte
	for _, s := range []string{a.Text, a.hash, a.domain} {
		if s != "" {
			all = append(all, []byte(strings.ToLower(s)))
		}
	}
	return all
}

// Message is what the log has of a message, or of a command without one.
type Message struct {
	ID      string // "" for a command
	Records []*Record
	More    int  // further lines, which were not kept
	Whole   bool // the address is in it; else only its domain is known
	Roles   Role
}

// maxRecords bounds the lines of a message that are kept.
const maxRecords = 100

// Result is what was found.
type Result struct {
	Messages []*Message // the oldest first
	Omitted  int        // older ones
	Lines    int        // lines of the gate that were looked at, roughly
	Skipped  int        // lines that are too long
	Dropped  uint64     // lines that the gate itself dropped, in that time
	First    time.Time  // of the lines
	Last     time.Time
}

// Search reads logs and collects messages.
type Search struct {
	query   Query
	needles [][]byte
	byID    map[string]*Message
	all     []*Message
	omitted map[string]bool
	result  Result

	recent [512]recentLine // for lines of a message before the one that has the address
	next   int

	repeated []*Record // of the history, which stand for several

	last  []byte // the last line
	lower []byte // reused
}

type recentLine struct {
	id   [idLength]byte
	line []byte
}

// idLength is the length of the id of a message.
const idLength = 12

// NewSearch returns a Search that has read nothing.
func NewSearch(q Query) *Search {
	s := &Search{query: q, byID: map[string]*Message{}, omitted: map[string]bool{}}
	if q.ID != "" {
		s.needles = [][]byte{[]byte(strings.ToLower(q.ID))}
	} else {
		s.needles = q.needles()
	}
	return s
}

// longestLine bounds the lines that are copied: the gate's with what syslog puts before them.
const longestLine = 2 * logging.MaxLine

// maxLine bounds a line. The gate's own have at most 4 KiB; the journal's JSON has more.
const maxLine = 1 << 20

// Read reads a log, until its end or an error. Line returns the gate's line in a line of the
// log, and may be nil.
func (s *Search) Read(ctx context.Context, log io.Reader, line func([]byte) []byte) error {
	in := bufio.NewReaderSize(log, maxLine)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := in.ReadSlice('\n')
		for long := false; errors.Is(err, bufio.ErrBufferFull); text = nil {
			if !long {
				s.result.Skipped++
				long = true
			}
			_, err = in.ReadSlice('\n')
		}
		if line != nil && text != nil {
			text = line(text)
		}
		if len(text) > 0 {
			s.line(text)
		}
		switch {
		case err == io.EOF:
			s.note(s.last)
			return nil
		case err != nil:
			return err
		}
	}
}

// line looks at a line. The caller may change it afterwards.
func (s *Search) line(line []byte) {
	s.result.Lines++
	if s.result.Lines%4096 == 1 || s.result.First.IsZero() && s.result.Lines < 4096 {
		s.note(line)
	}
	if len(line) <= longestLine {
		s.last = append(s.last[:0], line...)
	}
	id, hasID := idOf(line)
	known := hasID && s.query.ID == "" && s.byID[string(id)] != nil
	dropped := bytes.Contains(line, []byte("log lines dropped"))
	if known || dropped || s.mayMatch(line) {
		if r, ok := ParseLine(line); ok && !r.Time.Before(s.query.Since) {
			s.span(r.Time)
			s.record(r, dropped)
		}
	}
	if hasID && s.query.ID == "" && len(line) <= longestLine {
		recent := &s.recent[s.next%len(s.recent)]
		s.next++
		recent.id = [idLength]byte(id)
		recent.line = append(recent.line[:0], line...)
	}
}

// note notes the time of a line, to say later how far the log goes.
func (s *Search) note(line []byte) {
	if r, ok := ParseLine(line); ok {
		s.span(r.Time)
	}
}

func (s *Search) span(t time.Time) {
	if s.result.First.IsZero() || t.Before(s.result.First) {
		s.result.First = t
	}
	if t.After(s.result.Last) {
		s.result.Last = t
	}
}

// mayMatch reports whether a line can be about what is looked for. It is exact enough to parse
// few lines only.
func (s *Search) mayMatch(line []byte) bool {
	if s.needles == nil {
		return true
	}
	s.lower = appendLower(s.lower[:0], line)
	return slices.ContainsFunc(s.needles, func(n []byte) bool { return bytes.Contains(s.lower, n) })
}

func appendLower(to, line []byte) []byte {
	for _, c := range line {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// idOf returns the id in a line that looks as if it had one.
func idOf(line []byte) ([]byte, bool) {
	for _, key := range []string{" id=", `"id":"`} {
		if i := bytes.Index(line, []byte(key)); i >= 0 && i+len(key)+idLength <= len(line) {
			return line[i+len(key) : i+len(key)+idLength], true
		}
	}
	return nil, false
}

// record adds a record if it belongs to what is looked for.
func (s *Search) record(r *Record, dropped bool) {
	if dropped && r.Msg == "log lines dropped" {
		n, _ := strconv.ParseUint(r.Get("dropped"), 10, 64) // the gate wrote a number
		s.result.Dropped += n
		return
	}
	if s.inHistory(r) {
		return
	}
	id := r.Get("id")
	if s.query.ID != "" {
		if strings.EqualFold(id, s.query.ID) {
			s.add(s.message(id, r.Time), r)
		}
		return
	}
	how, roles := s.query.in(r)
	m := s.byID[id]
	if id == "" {
		m = nil
	}
	if how == not && m == nil {
		return
	}
	if m == nil {
		if m = s.message(id, r.Time); m == nil {
			return
		}
		s.recall(m)
	}
	m.Whole = m.Whole || how == whole
	m.Roles |= roles
	s.add(m, r)
}

// recall adds the earlier lines of a message.
func (s *Search) recall(m *Message) {
	if m.ID == "" {
		return
	}
	for i := range s.recent {
		recent := &s.recent[(s.next+i)%len(s.recent)]
		if string(recent.id[:]) != m.ID {
			continue
		}
		if r, ok := ParseLine(recent.line); ok && r.Get("id") == m.ID && !r.Time.Before(s.query.Since) && !s.inHistory(r) {
			s.add(m, r)
		}
	}
}

// message returns the message of an id, a new one if it is not there. If there are too many, the
// oldest is omitted; it returns nil if that is the one of the record.
func (s *Search) message(id string, at time.Time) *Message {
	if m := s.byID[id]; m != nil && id != "" {
		return m
	}
	m := &Message{ID: id, Whole: s.query.ID != ""}
	if len(s.all) >= s.query.Most {
		oldest := 0
		for i, other := range s.all {
			if other.time().Before(s.all[oldest].time()) {
				oldest = i
			}
		}
		if at.Before(s.all[oldest].time()) {
			s.omit(id)
			return nil
		}
		s.omit(s.all[oldest].ID)
		delete(s.byID, s.all[oldest].ID)
		s.all = slices.Delete(s.all, oldest, oldest+1)
	}
	s.all = append(s.all, m)
	if id != "" {
		s.byID[id] = m
	}
	return m
}

// mostOmitted bounds the omitted messages that are remembered, so that each counts once.
const mostOmitted = 100_000

// omit counts a message that is not kept.
func (s *Search) omit(id string) {
	if id != "" {
		if s.omitted[id] {
			return
		}
		if len(s.omitted) < mostOmitted {
			s.omitted[id] = true
		}
	}
	s.result.Omitted++
}

// time returns when the log first has the message.
func (m *Message) time() time.Time {
	if len(m.Records) == 0 {
		return time.Time{}
	}
	return m.Records[0].Time
}

// add adds a record to a message. A file that is being packed is there twice.
func (s *Search) add(m *Message, r *Record) {
	if slices.ContainsFunc(m.Records, r.same) {
		return
	}
	if len(m.Records) >= maxRecords {
		m.More++
		return
	}
	m.Records = append(m.Records, r)
}

// Result returns what was found, in the order of time.
func (s *Search) Result() Result {
	for _, m := range s.all {
		slices.SortStableFunc(m.Records, func(a, b *Record) int { return a.Time.Compare(b.Time) })
	}
	slices.SortStableFunc(s.all, func(a, b *Message) int { return a.time().Compare(b.time()) })
	s.result.Messages = s.all
	return s.result
}
