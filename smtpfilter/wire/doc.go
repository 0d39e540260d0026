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
//   - Messages: Body finds the end of the data by an exact CRLF.CRLF and
//     refuses bare CR, bare LF and NUL. go-smtp's own data reader is handed
//     nothing but the final dot.
//   - Doubt ends a connection: after a timeout inside a message, a chunk that
//     was not asked for or a line without end there is one reply and then
//     nothing more is read, so no byte of a message is ever executed.
package wire
