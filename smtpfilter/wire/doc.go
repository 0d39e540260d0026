// Package wire is the part of the gate that touches the client's bytes. Its
// Conn is the net.Conn that go-smtp's server is given: go-smtp stays the state
// machine of the session, but sees only what has passed here.
//
//   - Commands: Read returns one strictly validated command line at a time, in
//     a canonical form. The paths and parameters as the client wrote them are
//     parsed once, here, and handed to the session through Command; go-smtp
//     gets a stand-in address, so that no second parser can read the sender
//     differently from the one whose result is judged and sent on.
//   - Replies: what go-smtp writes is collected to whole replies, exchanged for
//     the session's own where it has set one (SetReply), and flushed when the
//     next Read would block, so that pipelined commands are answered in few
//     packets.
//   - Extensions: what EHLO offers is what the next hop offers and the gate can
//     pass on. The parameters of MAIL and RCPT are checked by the RFC of their
//     extension, kept from go-smtp, and passed on as they came.
//   - Who speaks: TLS, AUTH, XCLIENT, XFORWARD and the PROXY protocol are dealt
//     with here and go-smtp never hears of them. What makes the client another
//     one (TLS, XCLIENT) makes it introduce itself again before any mail.
//   - Messages: Body finds the end of the data by an exact CRLF.CRLF and
//     refuses bare CR, bare LF and NUL, or normalises the newlines. go-smtp's
//     own data reader is handed nothing but the final dot. A message in chunks
//     (BDAT) is DATA to go-smtp and one Body to the session.
//   - Doubt ends a connection: after a timeout inside a message, a chunk of
//     unknown size or a line without end there is one reply and then nothing
//     more is read, so no byte of a message is ever executed.
package wire
