package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
)

const gateConfig = `
hostname = "gate.example"
[listen]
max_message_bytes = 60000
[headers]
max_bytes = 20000
max_addresses = 100
max_field_bytes = 2000
[policy]
recipient_domains = ["example.net"]
allow_discard = true
[[list]]
name = "always"
path = "always.txt"
type = "allow"
override = true
[[list]]
name = "allowed"
path = "allowed.txt"
type = "allow"
[[list]]
name = "rejected"
path = "rejected.txt"
[[list]]
name = "deferred"
path = "deferred.txt"
action = "defer"
[[list]]
name = "tagged"
path = "tagged.txt"
action = "tag"
[[list]]
name = "discarded"
path = "discarded.txt"
action = "discard"
header_action = "tag"
[[list]]
name = "personal"
path = "personal.txt"
per_recipient = true
[[list]]
name = "watched"
path = "watched.txt"
action = "monitor"
`

var gateLists = map[string]string{
	"always.txt": "always.example\n", "allowed.txt": "ann@tagged.example\nann@rejected.example\n", "rejected.txt": "rejected.example  # bulk mail\n",
	"deferred.txt": "deferred.example\n", "tagged.txt": "tagged.example\nboss@\n", "discarded.txt": "discarded.example\n",
	"personal.txt": "bob@example.net clean.example\n", "watched.txt": "watched.example\n",
}

// fixedSet is a Store whose lists do not change.
type fixedSet struct{ set *blocklist.Set }

func (s fixedSet) Set() *blocklist.Set { return s.set }

// startGate starts the first listener of a configuration before a sink, as the gate would.
func startGate(t *testing.T, c *config.Config, set *blocklist.Set) (addr string, sink *smtptest.Sink) {
	t.Helper()
	sink = smtptest.NewSink(t)
	hop, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: c.Hostname, ProbeInterval: -1, Reuse: true})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	settings := setup.Settings(c, c.Listeners[0])
	settings.NextHop, settings.NoNames = hop, true
	settings.Checker = judge.Checker{Store: fixedSet{set}, Lists: c.Listeners[0].Lists, Unwrap: setup.Wrappings(c)}
	server := smtpfilter.New(smtpfilter.Config{Hostname: c.Hostname})
	l, err := server.Listen(socket, "", settings)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(server.Shutdown(context.Background()), <-served, hop.Close()); err != nil {
			t.Error(err)
		}
	})
	return socket.Addr().String(), sink
}

// sentMail is a message in a file, and its envelope.
type sentMail struct {
	from string
	to   []string
	file string
	bdat bool
}

// outcome is what the gate did with a message: the replies to RCPT, that to its end, and what
// arrived.
type outcome struct {
	rcpt    []string
	end     string // "": no recipient was accepted
	arrived []string
	tags    []string
}

// send sends a message to the gate, as programs do that send files.
func (m *sentMail) send(t *testing.T, addr string, sink *smtptest.Sink) (o outcome) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := textproto.NewConn(conn)
	ask := func(text string) string {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		code, message, err := c.ReadResponse(0)
		if protocol := new(textproto.Error); err != nil && !errors.As(err, &protocol) {
			t.Fatalf("%.200q: %v", text, err)
		}
		return fmt.Sprint(code, " ", message)
	}
	ask("")
	ask("EHLO client.example\r\n")
	ask("MAIL FROM:<" + m.from + ">\r\n")
	for _, to := range m.to {
		reply, _, _ := strings.Cut(ask("RCPT TO:<"+to+">\r\n"), "; id ")
		o.rcpt = append(o.rcpt, reply)
	}
	if !slices.ContainsFunc(o.rcpt, isPositive) {
		return o
	}
	text := strings.ReplaceAll(strings.ReplaceAll(m.file, "\r\n", "\n"), "\n", "\r\n")
	if !strings.HasSuffix(text, "\r\n") {
		text += "\r\n"
	}
	before := len(sink.Messages())
	if m.bdat {
		o.end = ask(fmt.Sprintf("BDAT %d LAST\r\n%s", len(text), text))
	} else if o.end = ask("DATA\r\n"); strings.HasPrefix(o.end, "354") {
		text = strings.ReplaceAll("\n"+text, "\n.", "\n..")[1:]
		o.end = ask(text + ".\r\n")
	}
	o.end, _, _ = strings.Cut(o.end, "; id ")
	for _, arrived := range sink.Messages()[before:] {
		o.arrived = append(o.arrived, arrived.Rcpts...)
		for line := range strings.Lines(string(arrived.Body)) {
			if tag, ok := strings.CutPrefix(line, smtpfilter.TagField+": "); ok {
				o.tags = append(o.tags, strings.TrimSpace(tag))
			}
		}
	}
	return o
}

func isPositive(reply string) bool { return reply[0] == '2' }

// TestAsTheGate sends 500 messages to a gate, many of them malformed, and asks what it would do
// with the same files. Who is refused at RCPT, the reply to the message, what becomes of it and
// its tags are the same.
func TestAsTheGate(t *testing.T) {
	const messages = 500
	c := load(t, gateConfig, gateLists)
	set := setOf(t, c)
	options, err := OnDisk(t.Context(), c, set, true)
	if err != nil {
		t.Fatal(err)
	}
	e := New(options)
	addr, sink := startGate(t, c, set)
	random := mailMaker{rand.New(rand.NewPCG(26, 7))}
	seen := map[string]int{}
	for i := range messages {
		m := random.mail()
		o := m.send(t, addr, sink)
		if what := m.compare(t, e, o); what == "" {
			t.Errorf("message %d from <%s> to %q:\n%.3000q", i, m.from, m.to, m.file)
		} else {
			seen[what]++
		}
		if t.Failed() {
			t.Fatalf("the gate: %q", o)
		}
	}
	t.Logf("%d messages: %v", messages, seen)
	for _, what := range []string{"accept", "tag", "discard", "refused at RCPT", "550 5.7.1", "451 4.7.1", "550 5.5.2", "552 5.3.4", "554 5.4.6", "554 5.6.0"} {
		if seen[what] < 4 {
			t.Errorf("%s: %d messages: the test does not test much", what, seen[what])
		}
	}
}

// ask returns what check says of the message to some recipients.
func (m *sentMail) ask(t *testing.T, e *Engine, to []string) messageResult {
	t.Helper()
	from := m.from
	if from == "" {
		from = "<>"
	}
	q := MessageQuestion{Question: Question{Recipients: to, Offline: true}, Name: "it", From: &from, NextHop: []string{"sink.example"}}
	a, err := e.Message(t.Context(), strings.NewReader(m.file), q)
	if err != nil {
		t.Fatalf("%v, with %.3000q", err, m.file)
	}
	r := a.JSON.(messageResult)
	if r.Action != a.Action.String() || a.Listed != (a.Action != verdict.Accept) {
		t.Errorf("%s, but %s; listed: %t", r.Action, a.Action, a.Listed)
	}
	var text bytes.Buffer
	if a.Print(&text); !strings.HasPrefix(text.String(), "it: "+r.Action+"\n") {
		t.Errorf("%s, but %s", r.Action, &text)
	}
	return r
}

// compare compares what the gate did with what check says, and returns it in a word.
func (m *sentMail) compare(t *testing.T, e *Engine, o outcome) string {
	t.Helper()
	differ := func(what string, gate, check any) string {
		t.Errorf("%s: the gate %q, check %q", what, gate, check)
		return ""
	}
	reply := func(text string) string { text, _, _ = strings.Cut(text, "; id "); return text }
	var accepted []string
	each := m.ask(t, e, m.to).ToEach
	for i, to := range m.to {
		g := each[slices.IndexFunc(each, func(g shownGroup) bool { return slices.Contains(g.Recipients, to) })]
		atRCPT := g.Decided != nil && g.Decided.Identity == verdict.EnvelopeIdentity && g.Action >= verdict.Defer
		switch {
		case isPositive(o.rcpt[i]) && !atRCPT:
			accepted = append(accepted, to)
		case isPositive(o.rcpt[i]) || !atRCPT || o.rcpt[i] != reply(g.Reply):
			return differ("RCPT "+to, o.rcpt[i], g.Reply)
		}
	}
	if accepted == nil {
		return "refused at RCPT"
	}
	r := m.ask(t, e, accepted)
	if !isPositive(o.end) {
		action := map[byte]string{'4': "defer", '5': "reject"}[o.end[0]]
		atRCPT := r.Decided != nil && r.Decided.Identity == verdict.EnvelopeIdentity
		if o.end != reply(r.Reply) || r.Action != action || atRCPT || o.arrived != nil {
			return differ("the end", o.end, r)
		}
		code, _, _ := strings.Cut(strings.Replace(o.end, " ", "_", 1), " ")
		return strings.Replace(code, "_", " ", 1)
	}
	action := "accept"
	if len(o.tags) > 0 {
		action = "tag"
	}
	if len(o.arrived) < len(accepted) {
		action = "discard"
	}
	if r.Action != action || r.Reply != "" || o.arrived != nil && !slices.Equal(o.tags, r.Tags) {
		return differ("the end", fmt.Sprint(action, o.arrived, o.tags), r)
	}
	return action
}

// mailMaker makes random messages.
type mailMaker struct{ *rand.Rand }

func (d mailMaker) pick(names ...string) string { return names[d.IntN(len(names))] }

// oneIn reports true once in n times.
func (d mailMaker) oneIn(n int) bool { return d.IntN(n) == 0 }

func (d mailMaker) address() string {
	return d.pick("ann", "bob", "boss", `"a b"`) + "@" +
		d.pick("clean.example", "clean.example", "rejected.example", "deferred.example", "tagged.example", "discarded.example", "watched.example", "always.example")
}

// mail returns a message in a file, and an envelope.
func (d mailMaker) mail() sentMail {
	m := sentMail{from: d.pick("a@clean.example", "a@plain.example", "a@plain.example", "a@plain.example", "a@plain.example", "a@tagged.example",
		"a@rejected.example", "a@deferred.example", "a@discarded.example", "a@always.example", "")}
	m.to = [][]string{{"you@example.net"}, {"you@example.net"}, {"bob@example.net"}, {"postmaster@example.net"}, {"abuse@example.net", "postmaster@example.net"},
		{"you@example.net", "bob@example.net"}, {"you@example.net", "postmaster@example.net"}}[d.IntN(7)]
	m.bdat = d.oneIn(3)
	// Of several faults, which one the gate names depends on packets and chunks: it reads the rest
	// of a chunk after a fault in the header without a look. So a message has one fault of its
	// bytes at most, and not after the header of a chunk.
	lines := append(d.firstLine(), d.fields()...)
	fault := d.IntN(45)
	if fault < 3 {
		lines = append(lines, d.pick("X: \x00", "X: a\rb", "X: a\r", "From: "+d.address()+"\r"))
	}
	if d.oneIn(12) {
		lines = append(lines, slices.Repeat([]string{d.pick("Received: x", "Received : x")}, 99+d.IntN(4))...)
	}
	if fault > 9 && fault < 15 {
		lines = append(lines, d.padding(lines, 19_995+d.IntN(8))...)
	}
	if !d.oneIn(6) {
		lines = append(lines, "")
	}
	if !d.oneIn(6) {
		lines = append(lines, d.body()...)
	}
	switch {
	case fault == 3 || fault == 4:
		lines = append(lines, d.pick("\x00", "a\rb", "a\r", "\r"))
		m.bdat = false
	case fault > 4 && fault < 10:
		lines = append(append(lines, ""), d.padding(lines, 59_990+d.IntN(14))...)
	}
	lineEnd := d.pick("\r\n", "\n")
	var file strings.Builder
	for _, line := range lines {
		file.WriteString(line + lineEnd)
		if d.oneIn(20) {
			lineEnd = d.pick("\r\n", "\n")
		}
	}
	m.file = file.String()
	if m.file == "" || d.oneIn(6) {
		m.file = strings.TrimRight(m.file, "\r\n") + "x"
	}
	return m
}

// padding returns lines that make a text about so long, with CRLF.
func (d mailMaker) padding(lines []string, size int) (more []string) {
	for _, line := range lines {
		size -= len(line) + 2
	}
	for size > 0 {
		line := "X-Padding: " + strings.Repeat("x", min(900, max(0, size-13)))
		more, size = append(more, line), size-len(line)-2
	}
	return more
}

// firstLine returns a line that a file may begin with, of a mailbox file or not.
func (d mailMaker) firstLine() []string {
	a := d.address()
	return [][]string{
		nil, nil, nil,
		{"From " + a + " Mon Jan  1 00:00:00 2024"}, {">From " + a + " Mon Jan  1 00:00:00 2024"}, {"From " + a}, {"From - Mon Jan  1 2024"},
		{"From : " + a}, {"From  \t : " + a}, {"From :" + a}, {"From\t: " + a}, {"From", " : " + a}, {"From ", " \t: " + a}, {"From : "}, {"From :x", " " + a},
		{" From: " + a}, {"\t" + a}, {"From " + a + ": x"}, {"From x:", " From: " + a}, {": " + a}, {"no field"}, {"\ufeffFrom: " + a},
	}[d.IntN(22)]
}

// fields returns the lines of some fields.
func (d mailMaker) fields() (lines []string) {
	for range d.IntN(6) {
		name := d.pick("From", "From", "From", "FROM", "Sender", "Reply-To", "Subject", "To", "Message-ID", "X-Y") + d.pick(":", ":", ": ", ": ", " : ", "\t:", " \r\n : ")
		lines = append(lines, strings.Split(name+d.value(), "\r\n")...)
		switch {
		case d.oneIn(12):
			lines = append(lines, d.pick("malformed "+d.address(), " ", "\t \t", ">From "+d.address(), "From "+d.address(), "<"+d.address()+">", strings.Repeat("y", 995+d.IntN(6))))
		case d.oneIn(10):
			lines = append(lines, lines[len(lines)-1])
		}
	}
	return lines
}

// value returns the value of a field.
func (d mailMaker) value() string {
	a := d.address()
	switch d.IntN(22) {
	case 0:
		return a + ", " + d.address() + ";" + d.address()
	case 1:
		return `"` + a + `" <` + d.address() + ">"
	case 2:
		return "=?utf-8?q?" + strings.ReplaceAll(a, "@", "=40") + "?= <" + d.address() + ">"
	case 3:
		return "=?" + d.pick("utf-8", "iso-8859-1", "unheard-of", "utf-7") + "?b?YW5uQHJlamVjdGVkLmV4YW1wbGU=?="
	case 4:
		return "(" + a + ") " + d.address() + " (open"
	case 5:
		return d.pick("boss", "ann%rejected.example", "rejected.example!ann", "<@rejected.example:"+a+">", "undisclosed:;", "g: "+a+";", "@rejected.example")
	case 6:
		return "J\xf6rg <" + a + ">"
	case 7:
		return "Jörg\x01\x7f <" + a + ">\x80"
	case 8:
		return strings.Replace(a, "@", "\x02@\x0b", 1)
	case 9:
		return "x\r\n <" + a + ">\r\n\t," + d.address()
	case 10: // a line of about 998 bytes
		return "(" + strings.Repeat("x", 960+d.IntN(30)) + ") " + a
	case 11: // a field of about 2000 bytes
		return "(" + strings.Repeat("x", 900) + ")\r\n (" + strings.Repeat("x", 900) + ")\r\n (" + strings.Repeat("x", 110+d.IntN(50)) + ") " + a
	case 12:
		return strings.Repeat(a+",\r\n ", 90+d.IntN(20)) + "x@clean.example"
	case 13:
		return ""
	case 14:
		return `"` + a + `\" <` + d.address() + `>, "<ok@clean.example>`
	}
	return d.pick("", "Ann ", `"Ann" `) + "<" + a + ">"
}

// body returns the lines of a body.
func (d mailMaker) body() []string {
	return []string{"Hello", ".", "..", ".x", "From: " + d.address(), strings.Repeat("x", 1200), "", "\xff"}
}
