// Package nexthop passes accepted mail on: to a mail server over SMTP or LMTP, or
// into a Maildir.
//
// A Target is one place that accepts mail, or a Group of them. It returns a
// Transaction for each envelope, and that a Message for its content. No connection
// is opened before the first recipient. The package stores no message, and only
// Message.Commit ends one: any failure before it leaves nothing at the next hop.
//
// Replies are those of the next hop, unchanged. An error says that the next hop
// could not be asked, made no sense, or refused the gate's own session (ErrSession);
// the client gets a 4xx.
package nexthop

import (
	"context"
	"errors"
	"net/netip"

	"spamgate/smtpfilter/wire"
)

// Client is the sender of a message to us.
type Client struct {
	Name  string         // name in DNS; "" if unknown
	Addr  netip.AddrPort // the zero AddrPort if unknown
	Local netip.AddrPort // the address that it connected to; the zero AddrPort if unknown
	Helo  string         // its name in HELO or EHLO, or ""
	Proto string         // "SMTP" or "ESMTP"
	Login string         // as whom a proxy has authenticated it, or ""

	// Gone ends when the client's connection to us does. Nil never does.
	Gone context.Context

	// LookupName, if not nil, looks up an empty Name; "" is unknown. It is called
	// at most once for a transaction, and only if the next hop wants the name.
	LookupName func(context.Context) string
}

// Envelope describes a transaction.
type Envelope struct {
	Client Client
	From   string   // the validated reverse-path without <>; "" is the null reverse-path
	Params []string // the parameters of MAIL as received, such as "BODY=8BITMIME"
	ID     string   // the message's id in our own log

	// MayLogin says that the client can log in through the gate (Authenticator). A
	// 530 of a next hop that offers AUTH is then its reply, and an error otherwise.
	MayLogin bool

	// Logged is the client for the next hop's log (XFORWARD), if it is not
	// Client: a proxy forwards mail for it.
	Logged *Client
}

// Format is the format of the bytes for Message.Write.
type Format uint8

// The formats.
const (
	// Stuffed is the format of DATA: lines that end in CRLF, dot-stuffed,
	// without the final dot.
	Stuffed Format = iota

	// Raw is the format of BDAT (RFC 3030): the same lines without
	// dot-stuffing; the last one may lack its CRLF.
	Raw

	// Binary is Raw with any bytes in it. The next hop must offer CHUNKING and
	// BINARYMIME.
	Binary
)

// Target is a place that accepts mail. Its methods may be called concurrently.
type Target interface {
	// Begin starts a transaction. It does not connect: the first Rcpt does. The
	// caller must end the transaction with Message.Commit or Abort.
	Begin(Envelope) Transaction

	// Extensions returns the keywords that the next hop offered in its last
	// reply to EHLO; before the first one 8BITMIME, ENHANCEDSTATUSCODES and
	// SIZE. The caller must not change them.
	Extensions() wire.Extensions

	// String returns the target's name for logs: "smtp://127.0.0.1:25",
	// "maildir:/var/mail/gate".
	String() string

	// Close ends what is kept for later messages. Transactions under way go on;
	// those of a later Begin fail.
	Close() error
}

// Authenticator is a Target whose clients can log in at the next hop.
type Authenticator interface {
	// Authenticate passes a client's AUTH command on, over a connection for this
	// client only. Args is the text after "AUTH ". Ask sends a challenge (334)
	// to the client and returns its answer. The reply is the next hop's. With a
	// 235 comes the Login, which the caller must close. An error says that the
	// next hop could not be asked.
	Authenticate(ctx context.Context, client Client, args string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error)
}

// Login is an authenticated client's connection to the next hop, for one transaction
// at a time. After the connection has ended, all transactions fail: only the client
// can log in again.
type Login interface {
	Begin(Envelope) Transaction
	Close() error
}

// Transaction is the delivery to one envelope. One goroutine uses it; any may call
// Abort.
type Transaction interface {
	// Rcpt sends one recipient, a validated forward-path without <>, with its
	// parameters as received. A negative reply is the next hop's refusal of MAIL
	// or RCPT. After an error the transaction is over, and all further calls
	// return that error.
	Rcpt(ctx context.Context, to string, params []string) (wire.Reply, error)

	// Data opens a message in a format. A nil Message with a nil error is a
	// refusal, which is the reply.
	Data(ctx context.Context, f Format) (Message, wire.Reply, error)

	// Abort ends the transaction. Nothing is delivered unless Commit has sent
	// the end of the message: then Abort changes nothing. It does not wait, and
	// interrupts a call that does. A second Abort does nothing.
	Abort()
}

// Message accepts the bytes of a message in the Format for Data. One goroutine uses
// it; any may call Abort.
type Message interface {
	// Write sends a piece of any length. An error may be a *ReplyError: the next
	// hop has refused the message before its end.
	Write(p []byte) (int, error)

	// Flush sends what Write has buffered, so that the next hop does not time
	// out if no more comes for a while. Its errors are those of Write.
	Flush() error

	// Commit ends the message and returns the next hop's reply. If the error
	// wraps ErrReplyLost, the outcome is unknown; after any other error nothing
	// was delivered. The end of ctx aborts the message before the end is sent;
	// afterwards Commit waits for the reply in any case.
	Commit(ctx context.Context) (wire.Reply, error)

	// Abort is the transaction's Abort.
	Abort()
}

// EachReply is a Message with a reply of the next hop for each recipient.
type EachReply interface {
	// Replies returns the replies after Commit, in the order in which Rcpt has
	// accepted the recipients; nil if there is one reply for all. After
	// ErrReplyLost there may be fewer: the outcome for the others is unknown.
	Replies() []wire.Reply
}

// Errors that callers handle.
var (
	// ErrReplyLost says that the end of a message was sent, wholly or in part,
	// and no credible reply came back: the next hop may have the message, or
	// not.
	ErrReplyLost = errors.New("reply to the message lost")

	// ErrAborted is the error of calls after Abort.
	ErrAborted = errors.New("transaction aborted")

	// ErrNotOffered says that a message needs what the next hop does not offer
	// on this connection, although the client was offered it.
	ErrNotOffered = errors.New("the next hop no longer offers what the client needs")

	// ErrNoXCLIENT says that mail needs XCLIENT, which the next hop does not
	// offer to us.
	ErrNoXCLIENT = errors.New("no mail without XCLIENT, which the next hop does not offer to the gate (Postfix: smtpd_authorized_xclient_hosts)")

	// ErrRequireTLS says that a message with REQUIRETLS (RFC 8689) cannot go to
	// the next hop: it does not offer REQUIRETLS, or the connection is not
	// encrypted, or the server is not verified.
	ErrRequireTLS = errors.New("REQUIRETLS support required")

	// ErrClosed is the error of transactions that begin after Close.
	ErrClosed = errors.New("next hop closed")
)

// ReplyError is an error with the next hop's reply: a refusal of the connection, or
// of a message before its end.
type ReplyError struct {
	Reply wire.Reply // as received
	Err   error      // what was being done, and what went wrong
}

// Error returns the cause and the reply.
func (e *ReplyError) Error() string { return e.Err.Error() + ": " + e.Reply.String() }

// Unwrap returns the cause.
func (e *ReplyError) Unwrap() error { return e.Err }
