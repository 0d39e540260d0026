// Package partial remembers what an LMTP server has replied for each recipient of a
// message, if it has replied differently.
//
// LMTP has one reply for each recipient of a message (RFC 2033, section 4.2), SMTP has
// one for all. When the replies differ, the gate can only ask the client to send the
// message again to everybody. The [Store] keeps what each recipient got. So nobody gets
// the message twice, and the client receives the final reply of each group in turn:
//
//   - [Delivered]: the recipient has the message. If the client sends the same message
//     again, it receives 250 without another delivery. A slower transaction does not
//     change that.
//   - [Pending]: the recipient was refused for now, or the outcome is unknown. The
//     message is delivered like any other.
//   - [Refused]: the recipient was refused for good. The gate gives the message to the
//     server once more, only for the recipients that it refused in the same words, so
//     that these words become the client's reply.
//
// # The same message
//
// A message is identified by its [Sum]: SHA-256 of the reverse-path, all header fields
// except those that relays add (Received, signatures …), and the body without dot-stuffing.
// So two messages that differ in Content-Type or Cc only are two. A stranger cannot have mail
// taken for delivered by knowing the sender and the recipients: the message has to be the same
// too. A Sum of an older version of the gate, which covered fewer fields, equals none: after
// an upgrade a message that is sent again may arrive twice.
//
// # Which recipients share a transaction
//
// The client names the recipients before it sends the message. [Group] decides at RCPT
// which of them can share a transaction: for every message that all of them have in
// common, they must be in the same state. Recipients with no message in common always
// can, since the client then brings an unknown message. So the entries of one message
// do not split another message to other recipients.
//
// Of a message's states, the one with the fewest turns goes first; among equals
// Delivered, then Pending, then Refused. A recipient waits for another's turn once and
// is then admitted, since the others may never come ([Store.Turn]). So k groups need k
// retries of the client, and no group blocks another for good. A recipient waits once
// for each turn of a message, not for each mail. An entry that the client has not come
// back for within a day separates nobody and blocks nobody. It still suppresses a second
// copy.
//
// # What is stored, and where
//
// The Store's file holds hashes, no addresses. A line is written and synced before the
// gate asks the client to come again, so an entry survives kill -9 and a loss of power.
// Each line has a checksum, and a line that was cut short is skipped. An entry ends with
// the final reply to the client, after 7 days, or as the oldest of more than 50,000. The
// Store rewrites the file when it holds more than twice as many lines as entries, plus
// some.
//
// Two processes may use one file during a handover: each reads what the other has
// written before it answers for a recipient. If the file cannot be written, or is not a
// regular file of this user, the entries are kept in memory only. Then a restart before
// the client's retry delivers the message twice to those who have it. No mail is lost.
package partial
