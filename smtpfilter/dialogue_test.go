package smtpfilter_test

import (
	"bufio"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/nexthop/nexthoptest"
	"spamgate/smtpfilter/partial"
)

// TestDialogues plays every file of testdata/dialogues against the gate with a
// next hop behind it. A file is a set-up, a line "---", and a conversation:
//
//	judge STAGE ADDRESS ACTION [REASON]   what the lists say; ADDRESS <> is the null sender
//	clear ADDRESS                         an overriding allow list knows this reverse-path
//	policy KEY VALUE…                     see setPolicy
//	limit N                               largest message in bytes
//	tls offered|required|implicit         with a certificate that the client trusts
//	auth                                  AUTH is passed on
//	id ID                                 what the gate is called in paths; its next hop hears nothing of it
//	trusted PREFIX, proxy PREFIX          who may say XCLIENT and XFORWARD, who begins with PROXY
//	normalize PREFIX                      whose bare newlines are normalised
//	allow client|network LIMIT N…         limits, named as in package limit
//	tarpit N                              how many refusals are held back at a time; see "policy tarpit"
//	hop COMMAND => REPLY                  the next hop's reply; '|' parts its lines; see nexthoptest.Config
//	hop second COMMAND => REPLY           … when it comes the second time
//	hop body N => REPLY                   … in the middle of a message, behind N bytes
//	hop patience COMMAND DURATION         how long the gate waits for its reply to that
//	hop extensions KEYWORD,…              what the next hop offers, "-" for nothing; beside a conversation with EHLO
//	hop tls                               the gate speaks TLS with it, and verifies it
//	hop lmtp                              it speaks LMTP, and the gate remembers who has what
//	spare                                 another next hop, that takes everything, stands in for it
//	---
//	C LINE     the client sends a line
//	R TEXT     the client sends bytes: \r \n \0 \xHH, and (TEXT)*N repeats
//	S LINE     the gate's next reply line; '*' stands for any text
//	E LINE,…   the reply to EHLO: the host name and these keywords, in this order
//	TLS        the client shakes hands
//	X          the gate closes the connection
//	Q          the client closes the connection
//	A COMMAND => REPLY   from now on the next hop answers so
//	P          the gate asks the next hop what it offers
//	K          the next hop cuts its connections
//	W TEXT     a command that the next hop got, '*' allowed, XFORWARD and EHLO among them
//	H TEXT     waits for such a command
//	N LINE     a command that the next hop got, in order, all connections; "N -" for none at all
//	M TEXT     the bytes of a delivered message behind its trace fields; escapes as in R
//	T LINE     a line of trace fields of the message of the last M, '*' allowed
//	O LINE     the same, and there is one of it only
//	L TEXT     a line of the log, '*' allowed; "L !TEXT" for none
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
	*scene
	t       *testing.T
	file    string
	gate    *gate
	log     lockedBuffer
	conn    net.Conn
	in      *bufio.Reader
	sinks   []*nexthoptest.Sink
	taken   int // delivered messages that were asked about
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
	d := &dialogue{scene: newScene(), t: t, file: file}
	line := 0
	for text := range strings.Lines(setup) {
		line++
		if text = strings.TrimSpace(text); text != "" && text[0] != '#' {
			d.at(line, text, d.setUp(text))
		}
	}
	d.start(strings.Contains(conversation, "EHLO "))
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
	for _, sink := range d.sinks {
		if v := sink.Violations(); len(v) > 0 {
			t.Errorf("%s: the next hop got what no client may send: %q", file, v)
		}
	}
	if messages := d.messages(); d.taken == 0 && len(messages) > 0 {
		t.Errorf("%s: a message was delivered: %q", file, messages[0].Body)
	}
}

// messages are those delivered so far.
func (d *dialogue) messages() []nexthoptest.Message {
	var all []nexthoptest.Message
	for _, sink := range d.sinks {
		all = append(all, sink.Messages()...)
	}
	return all
}

func (d *dialogue) at(line int, text string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("%s:%d: %s: %v", d.file, line, text, err)
	}
}

// start starts the gate and connects to it. Where the conversation depends on what
// the next hop offers, the gate has heard of that before.
func (d *dialogue) start(learnt bool) {
	var target nexthop.Target
	target, d.sinks = d.target(d.t)
	d.gate = newGate(d.t, gateOptions{
		target:  target,
		checker: d.judge,
		policy:  d.policy,
		wire:    d.wire,
		log:     slog.New(slog.NewTextHandler(&d.log, nil)),
		auth:    d.auth,
		limiter: limit.New(d.limits),
		tarpit:  d.tarpit,
		id:      d.id,
		memory:  d.memory(),
	})
	if learnt {
		d.probe()
	}
	conn, err := net.Dial("tcp", d.gate.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	d.use(conn)
}

// memory is what the gate remembers with, where the next hop speaks LMTP.
func (d *dialogue) memory() smtpfilter.Memory {
	if !d.next.LMTP {
		return nil
	}
	store := partial.Open(filepath.Join(d.t.TempDir(), "lmtp"), partial.Options{})
	d.t.Cleanup(store.Close)
	return store
}

// probe has the gate ask its next hops what they offer.
func (d *dialogue) probe() {
	targets := []nexthop.Target{d.gate.target}
	if group, ok := d.gate.target.(*nexthop.Group); ok {
		targets = group.Members()
	}
	for _, target := range targets {
		var refused *nexthop.ReplyError // of its MAIL: what is offered is known all the same
		if err := target.(*nexthop.SMTP).Probe(d.t.Context()); err != nil && !errors.As(err, &refused) {
			d.t.Fatal(err)
		}
	}
}

func (d *dialogue) use(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(waitLimit))
	d.conn, d.in = conn, bufio.NewReader(conn)
}
