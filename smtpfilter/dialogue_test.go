package smtpfilter_test

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
)

// TestDialogues plays every file of testdata/dialogues against the gate and its
// next hop. Package smtptest describes the format and what the client and the gate
// say. The other lines of the set-up are:
//
//	judge STAGE ADDRESS ACTION [REASON]   what the lists say; ADDRESS <> is the null sender
//	list …, recipients …, mixed …, key …  real lists in place of "judge": see [listScene.setUp]
//	clear ADDRESS                         an overriding allow list has this reverse-path
//	policy KEY VALUE…                     see setPolicy
//	limit N                               the largest message in bytes
//	tls offered|required|implicit         with a certificate that the client trusts
//	auth [required]                       the gate passes AUTH on, and may require a login
//	id ID                                 the gate's name in paths, which its next hop does not receive
//	trusted PREFIX, proxy PREFIX          who may use XCLIENT and XFORWARD, who begins with PROXY
//	normalize PREFIX                      whose bare newlines the gate normalizes
//	allow client|network LIMIT N…         limits, named as in package limit
//	tarpit N                              how many refusals are delayed at a time; see "policy tarpit"
//	hop COMMAND => REPLY                  the next hop's reply; '|' separates its lines; see smtptest.Config
//	hop second COMMAND => REPLY           … to the second such command
//	hop body N => REPLY                   … in the middle of a message, after N bytes
//	hop timeout COMMAND DURATION          how long the gate waits for the reply to that
//	hop extensions KEYWORD,…              what the next hop offers, "-" for nothing; for a dialogue with EHLO
//	hop tls                               the gate uses TLS with it, and verifies it
//	hop lmtp                              it speaks LMTP, and the gate remembers who has what
//	spare                                 another next hop, which accepts everything, stands in for it
//
// The other steps are those of [dialogue.listStep], and:
//
//	hop COMMAND => REPLY   from now on the next hop answers so
//	probe          the gate asks the next hop what it offers
//	disconnect     the next hop closes its connections
//	got TEXT       the next hop has received such a command, '*' allowed, XFORWARD and EHLO among them
//	wait TEXT      waits for such a command
//	relayed LINE   a command that the next hop received, in order, all connections; "relayed -" for none
//	message BYTES  the bytes of the next delivered message after its trace fields
//	trace LINE     a line of the trace fields of that message, '*' allowed
//	once LINE      the same, and it has one such line only
//	log TEXT       a line of the log, '*' allowed; "log !TEXT" for none
func TestDialogues(t *testing.T) { smtptest.Play(t, playDialogue) }

type dialogue struct {
	*scene
	t       *testing.T
	file    string
	gate    *gate
	log     lockedBuffer
	client  *smtptest.Peer
	sinks   []*smtptest.Sink
	signed  string   // the last message with a signature
	checked int      // delivered messages that were compared
	relayed []string // commands that the next hop must receive
	message smtptest.Message
}

func playDialogue(t *testing.T, file *smtptest.Dialogue) {
	d := &dialogue{scene: newScene(), t: t, file: file.File}
	file.Each(t, file.SetUp, d.setUp)
	d.start(slices.ContainsFunc(file.Steps, func(l smtptest.Line) bool { return strings.Contains(l.Text, "EHLO ") }))
	file.Each(t, file.Steps, d.step)
	d.client.Conn.Close()
	if d.relayed != nil {
		d.compareCommands(d.relayed)
	}
	for _, sink := range d.sinks {
		if v := sink.Violations(); len(v) > 0 {
			t.Errorf("%s: the next hop got what no client may send: %q", d.file, v)
		}
	}
	if messages := d.messages(); d.checked == 0 && len(messages) > 0 {
		t.Errorf("%s: a message was delivered: %q", d.file, messages[0].Body)
	}
}

// messages returns the messages that were delivered so far.
func (d *dialogue) messages() []smtptest.Message {
	var all []smtptest.Message
	for _, sink := range d.sinks {
		all = append(all, sink.Messages()...)
	}
	return all
}

// start starts the gate and connects to it. With learned, the gate first learns what the
// next hop offers.
func (d *dialogue) start(learned bool) {
	var target nexthop.Target
	target, d.sinks = d.target(d.t)
	checker, signatures := d.lists.start(d.t)
	if checker == nil {
		checker = d.judge
	}
	d.wire.Signatures = signatures
	d.gate = newGate(d.t, gateOptions{
		target:  target,
		checker: checker,
		policy:  d.policy,
		wire:    d.wire,
		log:     slog.New(slog.NewTextHandler(&d.log, nil)),
		auth:    d.auth,
		limiter: limit.New(d.limits),
		tarpit:  d.tarpit,
		id:      d.id,
		memory:  d.memory(),
	})
	if learned {
		d.probe()
	}
	conn, err := net.Dial("tcp", d.gate.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	d.client = smtptest.NewClient(conn)
}

// memory returns the gate's Memory if the next hop speaks LMTP.
func (d *dialogue) memory() smtpfilter.Memory {
	if !d.next.LMTP {
		return nil
	}
	store := partial.Open(filepath.Join(d.t.TempDir(), "lmtp"), partial.Options{})
	d.t.Cleanup(store.Close)
	return store
}

// probe makes the gate ask its next hops what they offer.
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
