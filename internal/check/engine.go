// Package check says what the gate would do with a sender or a message, and why: for the
// command of this name, and for the console of a running gate.
package check

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"sync"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/proof"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
)

// Options are what an Engine judges with. The functions are called for each question, so that
// a running gate can change what they return.
type Options struct {
	Config func() *config.Config
	Set    func() *blocklist.Set

	// Recipients returns the files with recipients. It is called only if they matter.
	Recipients func() ([]*recipients.File, error)

	DNS    *dnslist.Client // asks lists in DNS; nil: they are not asked
	Proofs *proof.Proofs   // proves senders; nil: all proofs are pending

	// Served returns the generation of the lists that a running gate serves, 0 if none
	// runs. It is nil if the Set is the running gate's own.
	Served func(ctx context.Context) uint64

	// Command says that a command of the gate's own asks: texts name its flags, and what
	// it asks is not bounded.
	Command bool
}

// Engine says what becomes of senders and messages. It is safe for concurrent use. What it
// looks up is not counted: neither as a lookup nor as a match of an entry.
type Engine struct{ options Options }

// New returns an Engine.
func New(o Options) *Engine { return &Engine{o} }

// OnDisk returns the Options of a command: a configuration, and the Set of the lists as they
// are on disk. The DNS is asked until ctx ends, or not at all if the command is offline.
func OnDisk(ctx context.Context, c *config.Config, set *blocklist.Set, offline bool) (o Options, err error) {
	quiet := slog.New(slog.DiscardHandler) // what would be logged shows in the answers
	o = Options{
		Config:     func() *config.Config { return c },
		Set:        func() *blocklist.Set { return set },
		Recipients: sync.OnceValues(func() ([]*recipients.File, error) { return setup.ReadRecipients(c) }),
		Command:    true,
	}
	if !offline {
		if o.DNS, err = setup.OpenDNS(c, quiet); err != nil {
			return o, err
		}
		context.AfterFunc(ctx, o.DNS.Close)
	}
	o.Proofs, err = setup.OpenProofs(c, quiet)
	return o, err
}

// Question asks about one address.
type Question struct {
	Listener string // or door; "" is the first listener, or all doors

	Address    string // of the sender
	InHeader   bool   // the sender stands in the header only
	Recipients []string

	Client netip.Addr // the server that sends; invalid: not known
	Helo   string     // its name

	Trace   bool // every step of the decision
	Offline bool // lists in DNS and proofs are not asked

	// Past says that the question is about mail that came before: recipients that the
	// listener would refuse now are omitted, no proof is asked, and doors are shown only if
	// there is no listener.
	Past bool
}

// Answer is what becomes of a sender or a message.
type Answer struct {
	JSON any // what "check --json" prints

	// Action is what the lists say for the recipients, the strictest. If there is no
	// listener, doors decide, and it is theirs. Listed says that it, or that of a door, is
	// another one than accept.
	Action verdict.Action
	Listed bool

	print func(w io.Writer)
}

// Print prints what "check" prints.
func (a *Answer) Print(w io.Writer) { a.print(w) }

// Address returns what becomes of a sender.
func (e *Engine) Address(ctx context.Context, q Question) (*Answer, error) {
	k, err := e.session(q)
	if err != nil {
		return nil, err
	}
	if q.Trace {
		return k.trace(ctx, q.Address)
	}
	return k.address(ctx, q.Address)
}

// Text prints what becomes of a sender, as "check" does.
func (e *Engine) Text(ctx context.Context, w io.Writer, q Question) error {
	a, err := e.Address(ctx, q)
	if err == nil {
		a.Print(w)
	}
	return err
}

// MessageQuestion asks about a message.
type MessageQuestion struct {
	Question // without Address, InHeader and Trace

	Name    string   // what the text calls the message
	From    *string  // the reverse-path; nil: that of the Return-Path field, or else it is not judged
	NextHop []string // names by which the next hop may complete addresses
}

// MaxMessageBytes bounds the messages that are judged, unless a command asks.
const MaxMessageBytes = 50 << 20

// Message returns what becomes of a message. If doors decide and proofs do not matter, it reads
// the header only.
func (e *Engine) Message(ctx context.Context, message io.Reader, q MessageQuestion) (*Answer, error) {
	k, err := e.session(q.Question)
	if err != nil {
		return nil, err
	}
	if len(q.Recipients) == 0 { // else they are read
		if err := k.readRecipients(); err != nil {
			return nil, err
		}
	}
	if !e.options.Command {
		message = &boundedReader{ctx, message, MaxMessageBytes}
	}
	return k.message(ctx, message, q)
}
