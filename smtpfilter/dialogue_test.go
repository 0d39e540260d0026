package smtpfilter_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/nexthop/nexthoptest"
	"spamgate/smtpfilter/wire"
)

// TestDialogues plays every file of testdata/dialogues against the gate with a
// next hop behind it. A file is a set-up, a line "---", and a conversation:
//
//	judge STAGE ADDRESS ACTION [REASON]   what the lists say; ADDRESS <> is the null sender
//	clear ADDRESS                         an overriding allow list knows this reverse-path
//	policy KEY VALUE…                     see setPolicy
//	limit N                               largest message in bytes
//	hop COMMAND => REPLY                  the next hop's reply; '|' parts its lines; see nexthoptest.Config
//	hop second COMMAND => REPLY           … when it comes the second time
//	hop body N => REPLY                   … in the middle of a message, behind N bytes
//	hop patience DURATION                 how long the gate waits for a reply of it
//	hop extensions KEYWORD,…              what the next hop offers
//	---
//	C LINE     the client sends a line
//	R TEXT     the client sends bytes: \r \n \0 \xHH, and (TEXT)*N repeats
//	S LINE     the gate's next reply line; '*' stands for any text
//	X          the gate closes the connection
//	Q          the client closes the connection
//	N LINE     a command that the next hop got, in order, all connections; "N -" for none at all
//	M TEXT     the bytes of a delivered message behind its trace fields; escapes as in R
//	T LINE     a line of trace fields of the message of the last M, '*' allowed
//	O LINE     the same, and there is one of it only
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogues/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			playDialogue(t, file)
		})
	}
}

type dialogue struct {
	t       *testing.T
	file    string
	judge   tableJudge
	policy  smtpfilter.Policy
	hop     nexthoptest.Config
	limit   int64
	waits   nexthop.Timeouts
	conn    net.Conn
	in      *bufio.Reader
	sink    *nexthoptest.Sink
	got     []nexthoptest.Message // delivered messages not yet asked about
	message nexthoptest.Message
}

func playDialogue(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	setup, conversation, ok := strings.Cut(string(data), "---\n")
	if !ok {
		t.Fatalf("%s: no line ---", file)
	}
	d := &dialogue{t: t, file: file, judge: tableJudge{}, hop: nexthoptest.Config{Replies: map[string]string{}}}
	line := 0
	for text := range strings.Lines(setup) {
		line++
		if text = strings.TrimSpace(text); text != "" && text[0] != '#' {
			d.at(line, text, d.setUp(text))
		}
	}
	d.sink = nexthoptest.NewSink(t, d.hop)
	d.start()
	var expected []string
	for text := range strings.Lines(conversation) {
		line++
		if text = strings.TrimRight(text, "\n"); text == "" || text[0] == '#' {
			continue
		}
		if verb, arg, _ := strings.Cut(text, " "); verb == "N" {
			expected = append(expected, arg)
			continue
		}
		d.at(line+1, text, d.step(text))
	}
	d.conn.Close()
	if expected != nil {
		d.compareCommands(expected)
	}
	if v := d.sink.Violations(); len(v) > 0 {
		t.Errorf("%s: the next hop got what no client may send: %q", file, v)
	}
	if len(d.got) > 0 {
		t.Errorf("%s: %d more messages were delivered", file, len(d.got))
	}
	for _, m := range d.sink.Messages() {
		d.knownMessage(m)
	}
}

func (d *dialogue) at(line int, text string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("%s:%d: %s: %v", d.file, line, text, err)
	}
}

func (d *dialogue) setUp(text string) error {
	verb, arg, _ := strings.Cut(text, " ")
	switch verb {
	case "judge":
		return d.judge.add(arg)
	case "clear":
		d.judge["clear "+arg] = smtpfilter.Verdict{ClearsMessage: true, Match: smtpfilter.Match{List: "always"}}
		return nil
	case "policy":
		return setPolicy(&d.policy, strings.Fields(arg))
	case "limit":
		var err error
		d.limit, err = strconv.ParseInt(arg, 10, 64)
		return err
	case "hop":
		if list, ok := strings.CutPrefix(arg, "extensions "); ok {
			d.hop.Extensions = strings.Split(list, ",")
			return nil
		}
		if patience, ok := strings.CutPrefix(arg, "patience "); ok {
			wait, err := time.ParseDuration(patience)
			d.waits = nexthop.Timeouts{Greeting: wait, Mail: wait, Rcpt: wait, Data: wait, Dot: wait}
			return err
		}
		command, reply, ok := strings.Cut(arg, " => ")
		if !ok {
			return errors.New("no =>")
		}
		reply = strings.ReplaceAll(reply, "|", "\n")
		if n, ok := strings.CutPrefix(command, "body "); ok {
			after, err := strconv.ParseInt(n, 10, 64)
			d.hop.Body = &nexthoptest.BodyFault{After: after, Reply: reply}
			return err
		}
		if later, ok := strings.CutPrefix(command, "second "); ok {
			var times atomic.Int32
			d.hop.Answer = func(c nexthoptest.Command) string {
				if c.Line == later && times.Add(1) == 2 {
					return reply
				}
				return ""
			}
			return nil
		}
		d.hop.Replies[command] = reply
		return nil
	}
	return errors.New("unknown set-up")
}

func setPolicy(p *smtpfilter.Policy, f []string) error {
	switch f[0] {
	case "headers":
		p.HeaderFields = f[1:]
	case "max_header":
		n, err := strconv.Atoi(f[1])
		p.MaxHeaderBytes = n
		return err
	case "bounces":
		p.CheckBounces = true
	case "domains":
		p.RecipientDomains = f[1:]
	case "exempt":
		p.ExemptRecipients = f[1:]
		if i := slices.Index(f, `"a`); i > 0 { // a quoted local part holds the space
			p.ExemptRecipients = slices.Concat([]string{f[i] + " " + f[i+1]}, f[i+2:])
		}
	case "max_recipients":
		n, err := strconv.Atoi(f[1])
		p.MaxRecipients = n
		return err
	case "contact":
		p.Contact = strings.Join(f[1:], " ")
	case "exempt_client":
		return addPrefix(p, f[1])
	default:
		return errors.New("unknown policy")
	}
	return nil
}

func (d *dialogue) start() {
	gate := newGate(d.t, gateOptions{
		nextHop: d.sink.Addr(),
		checker: d.judge,
		policy:  d.policy,
		wire:    wire.Config{MaxMessageBytes: d.limit},
		reuse:   true,
		waits:   d.waits,
	})
	conn, err := net.Dial("tcp", gate.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(waitLimit))
	d.conn, d.in = conn, bufio.NewReader(conn)
}

func (d *dialogue) step(text string) error {
	verb, arg, _ := strings.Cut(text, " ")
	switch verb {
	case "C":
		_, err := d.conn.Write([]byte(arg + "\r\n"))
		return err
	case "R":
		_, err := d.conn.Write([]byte(expand(arg)))
		return err
	case "S":
		line, err := d.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("got %q, %w", line, err)
		}
		if got, ok := strings.CutSuffix(line, "\r\n"); !ok || !like(arg, got) {
			return fmt.Errorf("got %q", line)
		}
		return nil
	case "X":
		if line, err := d.in.ReadString('\n'); err == nil || line != "" || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("got %q, %v; want the end of the connection", line, err)
		}
		return nil
	case "Q":
		return d.conn.Close()
	case "M":
		return d.nextMessage(expand(arg))
	case "O":
		if n := strings.Count(string(d.message.Body), arg+"\r\n"); n != 1 {
			return fmt.Errorf("%d times in %q", n, d.message.Body)
		}
		return nil
	case "T":
		for line := range strings.Lines(string(d.message.Body)) {
			if like(arg, strings.TrimRight(line, "\r\n")) {
				return nil
			}
		}
		return fmt.Errorf("not in %q", d.message.Body)
	}
	return errors.New("unknown step")
}

// nextMessage checks the next delivered message: trace fields, then the text.
func (d *dialogue) nextMessage(text string) error {
	messages := d.sink.Messages()
	seen := slices.IndexFunc(messages, func(m nexthoptest.Message) bool { return string(m.Body) == string(d.message.Body) })
	if len(messages) <= seen+1 {
		return fmt.Errorf("%d messages were delivered", len(messages))
	}
	d.message = messages[seen+1]
	trace, ok := strings.CutSuffix(string(d.message.Body), text)
	if !ok {
		return fmt.Errorf("got %q", d.message.Body)
	}
	return checkTrace(trace)
}

func (d *dialogue) knownMessage(m nexthoptest.Message) {
	if string(m.Body) == string(d.message.Body) {
		return
	}
	if d.message.Body == nil {
		d.t.Errorf("%s: a message was delivered: %q", d.file, m.Body)
	}
}

// compareCommands compares what the next hop got; NOOP, RSET and QUIT at the
// end of a connection are its client's own business.
func (d *dialogue) compareCommands(want []string) {
	if len(want) == 1 && want[0] == "-" {
		want = nil
	}
	var got []string
	for _, c := range d.sink.Commands() {
		if v := c.Verb(); v != "QUIT" && v != "RSET" && v != "XFORWARD" && v != "EHLO" && v != "HELO" {
			got = append(got, c.Line)
		}
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("%s: the next hop got\n\t%s\nwant\n\t%s", d.file, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// checkTrace checks that trace is X-Spamgate fields and one Received field.
func checkTrace(trace string) error {
	rest := trace
	for strings.HasPrefix(rest, "X-Spamgate: listed; ") {
		_, rest, _ = strings.Cut(rest, "\r\n")
	}
	lines := strings.Split(rest, "\r\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "Received: from ") || lines[3] != "" ||
		!like("\tby gate.example with * id *;", lines[1]) || !strings.HasPrefix(lines[2], "\t") {
		return fmt.Errorf("trace fields %q", trace)
	}
	if _, err := time.Parse("Mon, 02 Jan 2006 15:04:05 -0700", lines[2][1:]); err != nil {
		return err
	}
	return nil
}

// like compares text with a pattern in which '*' stands for any text.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) || len(text) < len(parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// expand decodes \r, \n, \0 and \xHH, and repeats (text)*N.
func expand(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, `\r`):
			b.WriteByte('\r')
			i += 2
		case strings.HasPrefix(rest, `\n`):
			b.WriteByte('\n')
			i += 2
		case strings.HasPrefix(rest, `\0`):
			b.WriteByte(0)
			i += 2
		case strings.HasPrefix(rest, `\x`) && len(rest) >= 4:
			v, _ := strconv.ParseUint(rest[2:4], 16, 8)
			b.WriteByte(byte(v))
			i += 4
		case strings.HasPrefix(rest, `\(`):
			text, after, _ := strings.Cut(rest[2:], `\)*`)
			digits := 0
			for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
				digits++
			}
			n, _ := strconv.Atoi(after[:digits])
			b.WriteString(strings.Repeat(expand(text), n))
			i = len(s) - len(after) + digits
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}
