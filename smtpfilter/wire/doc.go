// Package wire reads and writes the client's bytes. Its Conn is the net.Conn of
// go-smtp's server: go-smtp is the state machine of the session, but receives only what
// has passed here.
//
//   - Commands: Read returns one strictly validated command line at a time, in a
//     canonical form. Paths and parameters are parsed once, here, and the session gets
//     them from Command. go-smtp gets a stand-in address, so that no second parser can
//     read the sender differently from the one that is judged and sent on.
//   - Replies: Write collects what go-smtp writes to whole replies, and replaces them
//     by the session's (SetReply). They are flushed when the next Read would block, so
//     that pipelined commands are answered in few packets.
//   - Extensions: EHLO offers what the next hop offers and the gate can pass on. The
//     parameters of MAIL and RCPT are validated by the RFC of their extension and
//     passed on unchanged; go-smtp does not get them.
//   - Client: TLS, AUTH, XCLIENT, XFORWARD and the PROXY protocol are handled here.
//     After TLS and XCLIENT the client must send HELO or EHLO again before any mail.
//   - Messages: Body finds the end of the data by an exact CRLF.CRLF and refuses bare
//     CR, bare LF and NUL, or normalizes the newlines. go-smtp's data reader gets only
//     the final dot. A message in chunks (BDAT) is DATA to go-smtp and one Body to the
//     session.
//   - Errors that leave doubt end the connection: after a timeout inside a message, a
//     chunk of unknown size or a line without end there is one reply, and nothing more
//     is read. So no byte of a message can be executed as a command.
package wire
