// Package nexthop hands accepted mail on: to a mail server over SMTP or LMTP, or
// into a Maildir.
//
// A Target is one place that takes mail, or a Group of them. It gives a Transaction for each
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
	Local netip.AddrPort // where it connected to; the zero AddrPort where unknown
	Helo  string         // what it called itself, "" where it did not
	Proto string         // "SMTP" or "ESMTP"
	Login string         // as whom it is authenticated by a proxy in front of us, "" otherwise

	// Gone ends when the client's connection to us does. Nil never does.
	Gone context.Context

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

	// Logged is the client as the next hop's log is to have it (XFORWARD),
	// where that is another than Client: behind a proxy that forwards for it.
	Logged *Client
}

// Format is how the bytes of a message are given to Message.Write.
type Format uint8

// The formats.
const (
	// Stuffed is the format of DATA: lines that end in CRLF, dot-stuffed,
	// without the final dot.
	Stuffed Format = iota

	// Raw is the format of BDAT (RFC 3030): the same lines without
	// dot-stuffing; the last one may lack its CRLF.
	Raw

	// Binary is Raw with any bytes in it. A next hop that does not offer
	// CHUNKING and BINARYMIME can't be given it.
	Binary
)

// Target is a place that takes mail. Its methods may be called at the same
// time.
type Target interface {
	// Begin starts a transaction. It does not connect: the next hop is asked
	// at the first Rcpt. The transaction must be ended, by Message.Commit or by
	// Abort.
	Begin(Envelope) Transaction

	// Extensions are the keywords that the next hop offers, as its last reply
	// to EHLO had them. Before the first one, and for as long as none comes, they
	// are 8BITMIME, ENHANCEDSTATUSCODES and SIZE. They are shared, and not to be
	// changed.
	Extensions() wire.Extensions

	// String names the target for logs: "smtp://127.0.0.1:25",
	// "maildir:/var/mail/gate".
	String() string

	// Close ends what is kept for later messages. Transactions under way are
	// not touched; a Begin afterwards gives one that fails.
	Close() error
}

// Authenticator is a Target whose clients can log in at the next hop.
type Authenticator interface {
	// Authenticate hands a client's AUTH command on, over a connection that
	// is the client's alone. Args is what follows "AUTH ". Ask hands a
	// challenge (334) back to the client and returns its answer. The reply is the
	// next hop's; with a 235 comes the Login, which must be closed. An error
	// says that the next hop could not be asked.
	Authenticate(ctx context.Context, client Client, args string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error)
}

// Login is an authenticated client's connection to the next hop. One
// transaction at a time goes over it. Once the connection has ended every
// Transaction fails, since only the client can log in again.
type Login interface {
	Begin(Envelope) Transaction
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

	// Data opens a message that is given in a format. A nil Message with a nil
	// error is the next hop's refusal, which is the reply.
	Data(ctx context.Context, f Format) (Message, wire.Reply, error)

	// Abort drops the transaction, with a message that is under way. Nothing
	// is delivered, unless Commit has sent the end already: then Abort changes
	// nothing. It does not wait, and interrupts a call that does. A second
	// Abort does nothing.
	Abort()
}

// Message takes a message in the Format that Data was told. One goroutine uses it; Abort alone may be called from
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

// EachReply is what a Message may have besides: the next hop's answers for each
// recipient apart.
type EachReply interface {
	// Replies returns them after Commit, in the order in which Rcpt has accepted the
	// recipients; nil where the next hop has one answer for all. After
	// ErrReplyLost they are those that came, and may be fewer than the recipients:
	// what became of the message for the others is unknown.
	Replies() []wire.Reply
}

// Errors that a caller tells apart.
var (
	// ErrReplyLost says that a message's end was sent, wholly or in part, and
	// no reply that can be believed came back: the next hop may have the
	// message, or not.
	ErrReplyLost = errors.New("reply to the message lost")

	// ErrAborted is what calls return after Abort.
	ErrAborted = errors.New("transaction aborted")

	// ErrNotOffered says that a message needs what the next hop does not offer
	// on this connection, though it did when the client was told so.
	ErrNotOffered = errors.New("the next hop no longer offers what the client was told")

	// ErrNoXCLIENT says that the next hop must be told its clients by XCLIENT,
	// and does not offer that to us.
	ErrNoXCLIENT = errors.New("no mail without XCLIENT, which the next hop does not offer to the gate (Postfix: smtpd_authorized_xclient_hosts)")

	// ErrRequireTLS says that a message with REQUIRETLS (RFC 8689) cannot go to
	// the next hop: it does not offer REQUIRETLS, or the connection is not
	// encrypted, or with nobody knows whom.
	ErrRequireTLS = errors.New("REQUIRETLS support required")

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
