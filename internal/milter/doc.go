// Package milter is the door for mail servers that speak Sendmail's milter protocol, such as
// Sendmail and Postfix. It translates the protocol into questions to a [door.Door].
//
// # The protocol
//
// A mail server opens a connection for each of its clients and sends packets: four bytes of
// length, a command, and the command's data. The first packet negotiates a version and two
// masks: what the milter may do to a message, and which packets the server leaves out or
// wants no answer to. A [Server] accepts versions 2 to 6 and asks for nothing that the mail
// server has not offered. The protocol has no specification. The truth is in
// libmilter/engine.c and sendmail/milter.c of Sendmail, and src/milter/milter8.c of Postfix.
//
// # What is decided when
//
// CONNECT, HELO and MAIL are always continued, so that postmaster is reachable by everybody.
// A listed reverse-path is refused at each RCPT, with the reply of the proxy. A refused
// recipient leaves the message as it is for the others. The header is judged at the end of
// the message, where the mail server takes changes and has its queue id. The body is not
// asked for.
//
// A discarded message is dropped if all recipients are discarded. Otherwise these are
// deleted from it, or it is tagged if the mail server does not allow that.
//
// After a violation of the protocol the connection is closed, and the mail server does with
// the mail what it is configured to do without a milter. So does it if the gate ends.
package milter
