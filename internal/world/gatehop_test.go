package world

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A hop is a next hop: a mail server that answers, refuses, stalls, lies and dies.
type hop struct {
	w      *gateWorld
	name   string
	addr   string
	offers []string
	faults []hopFault // what happens at the next command of its kind
}

// A hopFault is what a next hop does once.
type hopFault struct {
	stage string // the verb; "greeting"; "body": in the middle of a message; "end" of a message
	what  string // "says": the text; "closes"; "resets"; "has it, and closes"; "is late"; "is silent"
	text  string
	late  time.Duration
}

func (f hopFault) String() string {
	switch f.what {
	case "says":
		return fmt.Sprintf("says %q at %s", f.text, f.stage)
	case "is late":
		return fmt.Sprintf("is %v late at %s", f.late, f.stage)
	}
	return f.what + " at " + f.stage
}

// refuses reports whether it is a refusal, after which all is as before the command.
func (f hopFault) refuses() bool {
	return strings.HasPrefix(f.text, "4") || strings.HasPrefix(f.text, "5")
}

// A delivery is a message that a next hop has.
type delivery struct {
	hop, from string
	to        []string
	text      string
}

// plan lets something happen once.
func (h *hop) plan(f hopFault) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.faults = append(h.faults, f)
}

// take returns the next fault of a stage; zero: none.
func (h *hop) take(stage string) (f hopFault) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if i := slices.IndexFunc(h.faults, func(f hopFault) bool { return f.stage == stage }); i >= 0 {
		f = h.faults[i]
		h.faults = slices.Delete(h.faults, i, i+1)
	}
	return f
}

// A hopSession is a connection of the gate to a next hop.
type hopSession struct {
	*hop
	conn *end
	in   *bufio.Reader
	from string // "-": no transaction is open
	to   []string
	text []byte // of a message in chunks
}

func (h *hop) serve(e *end) {
	s := &hopSession{hop: h, conn: e, in: bufio.NewReader(e), from: "-"}
	defer e.Close()
	for ok := s.answer(s.take("greeting"), "220 "+h.name+".example ESMTP"); ok; {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return
		}
		ok = s.command(line)
	}
}

// say sends a reply.
func (s *hopSession) say(reply string) bool {
	if reply == "" {
		return true
	}
	_, err := io.WriteString(s.conn, strings.ReplaceAll(reply, "\n", "\r\n")+"\r\n")
	return err == nil && !strings.HasPrefix(reply, "421")
}

// answer sends a reply, or does what was planned for it. It reports whether the connection goes on.
func (s *hopSession) answer(f hopFault, reply string) bool {
	if f.what != "" {
		s.w.tell("%s %v", s.name, f)
	}
	switch f.what {
	case "says":
		reply = f.text
	case "is late":
		select {
		case <-time.After(f.late):
		case <-s.w.healed:
		}
	case "is silent":
		<-s.w.healed
		return false
	case "closes", "has it, and closes":
		return false
	case "resets":
		s.conn.net.mu.Lock()
		defer s.conn.net.mu.Unlock()
		s.conn.reset()
		return false
	}
	return s.say(reply)
}

var (
	hopMail = regexp.MustCompile(`^MAIL FROM:<([^<> ]*)>( [A-Z0-9=-]+)*\r\n$`)
	hopRcpt = regexp.MustCompile(`^RCPT TO:<([^<> ]+)>\r\n$`)
	hopBdat = regexp.MustCompile(`^BDAT ([0-9]+)( LAST)?\r\n$`)
	hopElse = regexp.MustCompile(`^(EHLO gate.example|HELO gate.example|RSET|QUIT|DATA)\r\n$`)
)

// command answers a command.
func (s *hopSession) command(line string) bool {
	if m := hopMail.FindStringSubmatch(line); m != nil {
		return s.mail(m[1])
	}
	if m := hopRcpt.FindStringSubmatch(line); m != nil {
		return s.rcpt(m[1])
	}
	if m := hopBdat.FindStringSubmatch(line); m != nil {
		var n int
		_, _ = fmt.Sscan(m[1], &n)
		return s.chunk(n, m[2] != "")
	}
	if !hopElse.MatchString(line) {
		s.w.fail("%s was sent the command %q", s.name, line)
		return false
	}
	switch verb := line[:4]; verb {
	case "EHLO":
		s.from = "-"
		return s.answer(s.take(verb), "250-"+strings.Join(append([]string{s.name + ".example"}, s.offers...), "\n250-")+"\n250 HELP")
	case "HELO":
		s.from = "-"
		return s.answer(s.take(verb), "250 "+s.name+".example")
	case "RSET":
		s.from = "-"
		return s.answer(s.take(verb), "250 2.0.0 Ok")
	case "QUIT":
		_ = s.answer(s.take(verb), "221 2.0.0 Bye")
		return false
	}
	return s.data()
}

func (s *hopSession) mail(from string) bool {
	if s.from != "-" {
		return s.say("503 5.5.1 Nested MAIL")
	}
	f := s.take("MAIL")
	if !f.refuses() {
		s.from, s.to, s.text = from, nil, nil
	}
	return s.answer(f, "250 2.1.0 Ok")
}

func (s *hopSession) rcpt(to string) bool {
	local, _, _ := strings.Cut(to, "@")
	f := s.take("RCPT")
	switch {
	case s.from == "-":
		return s.say("503 5.5.1 MAIL first")
	case local == "nobody":
		return s.answer(f, "550 5.1.1 No such user")
	case local == "later":
		return s.answer(f, "450 4.2.0 Later")
	}
	if !f.refuses() {
		s.to = append(s.to, to)
	}
	return s.answer(f, "250 2.1.5 Ok")
}

// data receives a message after DATA.
func (s *hopSession) data() bool {
	if s.from == "-" || len(s.to) == 0 {
		return s.say("503 5.5.1 No valid recipients")
	}
	f := s.take("DATA")
	if !s.answer(f, "354 Go on") || f.refuses() {
		return f.refuses()
	}
	early := s.take("body")
	if early.what != "" && !s.answer(early, early.text) {
		return false
	}
	var text strings.Builder
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return false
		}
		if !strings.HasSuffix(line, "\r\n") || strings.Count(line, "\r") > 1 {
			s.w.fail("%s was sent the line %q", s.name, line)
		}
		if line == ".\r\n" {
			if early.refuses() { // it has its reply
				s.from = "-"
				return true
			}
			return s.end(text.String())
		}
		text.WriteString(strings.TrimPrefix(line, "."))
	}
}

// chunk receives a part of a message with BDAT.
func (s *hopSession) chunk(n int, last bool) bool {
	part := make([]byte, n)
	if _, err := io.ReadFull(s.in, part); err != nil {
		return false
	}
	if s.from == "-" || len(s.to) == 0 {
		return s.say("503 5.5.1 No valid recipients")
	}
	s.text = append(s.text, part...)
	if last {
		return s.end(string(s.text))
	}
	f := s.take("body")
	if f.refuses() {
		s.from = "-"
	}
	return s.answer(f, "250 2.0.0 Ok")
}

// end is the end of a message.
func (s *hopSession) end(text string) bool {
	f := s.take("end")
	from, to := s.from, s.to
	s.from, s.to, s.text = "-", nil, nil
	switch f.what {
	case "", "is late", "has it, and closes":
		s.w.delivered(delivery{s.name, from, to, text})
	}
	return s.answer(f, "250 2.0.0 Ok: queued")
}
