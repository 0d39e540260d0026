// Package nexthop hands accepted mail on: to a mail server over SMTP, or into a
// Maildir.
//
// A Target is one place that takes mail. It gives a Transaction for each
// envelope, and that a Message for its content. Nothing is connected to or
// created before the first recipient is asked for, nothing is kept of a message
// here, and a message is only ever ended by Message.Commit: whatever goes wrong
// before leaves nothing behind at the next hop.
//
// Replies are the next hop's own words, every line of them. An error, in
// contrast, says that the next hop could not be asked, or made no sense; its
// client gets a 4xx.
package nexthop

import (
	"context"
	"errors"
	"net/netip"

	"spamgate/smtpfilter/wire"
)

// Client is who brings the message to us.
type Client struct {
	Name  string         // name in DNS, "" where unknown
	Addr  netip.AddrPort // the zero AddrPort where unknown
	Helo  string         // what it called itself, "" where it did not
	Proto string         // "SMTP" or "ESMTP"

	// LookupName, where it is not nil and Name is empty, finds the name out. It
	// is called at most once for a transaction, and only if the next hop wants
	// to know the name; "" is unknown.
	LookupName func(context.Context) string
}

// Envelope is what is known when a transaction begins.
type Envelope struct {
	Client Client
	From   string   // the validated reverse-path without <>; "" is the null reverse-path
	Params []string // the parameters of MAIL as they came, such as "BODY=8BITMIME"
	ID     string   // the message's id in our own log
}

// Target is a place that takes mail. Its methods may be called at the same
// time.
type Target interface {
	// Begin starts a transaction. It does not connect: the next hop is asked
	// at the first Rcpt. The transaction must be ended, by Message.Commit or by
	// Abort.
	Begin(Envelope) Transaction

	// String names the target for logs: "smtp://127.0.0.1:25",
	// "maildir:/var/mail/gate".
	String() string

	// Close ends what is kept for later messages. Transactions under way are
	// not touched; a Begin afterwards gives one that fails.
	Close() error
}

// Transaction is one envelope. One goroutine uses it; Abort alone may be called
// from any.
type Transaction interface {
	// Rcpt asks for one recipient, a validated forward-path without <>, with
	// its parameters as they came. A reply that is not positive is the next
	// hop's refusal of MAIL or RCPT. After an error the transaction is over
	// and every further call returns that error.
	Rcpt(ctx context.Context, to string, params []string) (wire.Reply, error)

	// Data opens the message. A nil Message with a nil error is the next
	// hop's refusal, which is the reply.
	Data(ctx context.Context) (Message, wire.Reply, error)

	// Abort drops the transaction, with a message that is under way. Nothing
	// is delivered, unless Commit has sent the end already: then Abort changes
	// nothing. It does not wait, and interrupts a call that does. A second
	// Abort does nothing.
	Abort()
}

// Message takes a message in wire format: lines that end in CRLF, dot-stuffed,
// without the final dot. One goroutine uses it; Abort alone may be called from
// any.
type Message interface {
	// Write passes a piece of any length on. An error may be a *ReplyError:
	// the next hop has refused the message before its end.
	Write(p []byte) (int, error)

	// Flush sends on what Write has kept back for a larger piece: for when no
	// more can be written for a while, so that the next hop sees that there
	// is somebody. Its errors are those of Write.
	Flush() error

	// Commit ends the message and returns the next hop's reply. An error that
	// wraps ErrReplyLost says that the outcome is unknown; after any other
	// error nothing was delivered. A context that is cancelled before the end
	// is sent aborts the message; afterwards the reply is waited for in any
	// case.
	Commit(ctx context.Context) (wire.Reply, error)

	// Abort is the transaction's Abort.
	Abort()
}

// Errors that a caller tells apart.
var (
	// ErrReplyLost says that a message's end was sent, wholly or in part, and
	// no reply that can be believed came back: the next hop may have the
	// message, or not.
	ErrReplyLost = errors.New("reply to the message lost")

	// ErrAborted is what calls return after Abort.
	ErrAborted = errors.New("transaction aborted")

	// ErrClosed is what a transaction returns that begins after Close.
	ErrClosed = errors.New("next hop closed")
)

// ReplyError is an error in whose course the next hop said something: it
// refused us in its greeting or at EHLO, or it refused a message before its
// end.
type ReplyError struct {
	Reply wire.Reply // as it came
	Err   error      // what was being done, and what went wrong
}

// Error gives the cause and the reply.
func (e *ReplyError) Error() string { return e.Err.Error() + ": " + e.Reply.String() }

// Unwrap gives the cause.
func (e *ReplyError) Unwrap() error { return e.Err }
