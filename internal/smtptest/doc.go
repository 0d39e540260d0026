// Package smtptest supports tests of SMTP programs: next hops on loopback, and
// dialogues that are written in files.
//
// A [Sink] is an SMTP or LMTP server that accepts every message and keeps its
// bytes exactly as received. Its [Config] makes it refuse, stay silent or close
// the connection at any step. A [Script] is a server that plays one side of a
// dialogue and reports every byte that differs from it. Both end with the test
// that started them: its cleanup closes the listener and every connection, and
// waits for their goroutines.
//
// # Dialogues
//
// A dialogue file holds set-up lines, a line "---", and steps. Without the line
// "---" all lines are steps. Empty lines and lines that begin with '#' are
// skipped. A line is a word and the text after it:
//
//	# The next hop closes the connection when it should reply to RCPT.
//	extensions PIPELINING
//	---
//	S 220 *
//	C MAIL FROM:<a@example.com>
//	S 250 2.1.0 Ok
//	C! RCPT TO:<b@example.net>\r\nDATA\r\n
//	S [close]
//
// A [Peer] plays one side of the connection. It sends what its side says, and
// expects to receive what the other side says:
//
//	C LINE          the client sends a line; '*' stands for any text where it is expected
//	S LINE          the server sends a line, likewise
//	C! BYTES        the client sends bytes, see Expand
//	S! BYTES        the server sends bytes
//	C [close]       the client closes the connection; likewise S [close]
//	S [reset]       the server closes the connection with a RST; a Peer cannot expect this
//	S [silence]     the server sends nothing more; likewise
//	S [alert]       the server closes the connection, perhaps with a TLS alert
//	C [message]     the client sends lines up to and including "."
//	C [connect]     the client connects again: the dialogue of the next connection begins
//	E KEYWORD,…     the server's reply to EHLO: gate.example and these keywords, in this order
//	TLS             both sides begin TLS
//	TLS 1.1         the Peer knows no newer version of TLS, and the handshake fails
//	TLS fails       the handshake fails, or the client closes the connection after it
//	HOLD            the Peer waits for a call of Script.Continue
//
// All other lines are those of the test that plays the dialogue.
package smtptest

import "time"

// Directives that stand in place of a reply, or as its last line.
const (
	Close   = "[close]"   // closes the connection with a FIN
	Reset   = "[reset]"   // closes the connection with a RST
	Silence = "[silence]" // sends nothing more, and reads until the client closes the connection
)

// waitLimit limits each wait of a test for the other side. Only a test that
// hangs reaches it.
const waitLimit = 20 * time.Second
