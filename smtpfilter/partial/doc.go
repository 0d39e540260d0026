// Package partial remembers what an LMTP server has said of each recipient of a
// message, where it said different things.
//
// LMTP has one reply for each recipient of a message (RFC 2033, section 4.2), SMTP
// one for all. When the replies differ the client can only be told to send the
// message again to everybody. The [Store] keeps what each recipient got, so that
// nobody gets the message twice, and so that the client hears the final reply of
// each group on its own:
//
//   - [Delivered]: the recipient has the message. The client hears 250 without
//     another delivery, if the message that it brings is the same.
//     A slower transaction does not change that.
//   - [Pending]: the recipient was refused for now, or what became of the message
//     is unknown. The message is delivered as any other.
//   - [Refused]: the recipient was refused for good. The message is given to the
//     server once more for those alone that it refused in the same words, so
//     that these words become the client's reply.
//
// # The same message
//
// A message is known by its [Sum]: SHA-256 of the reverse-path, the fields
// Message-ID, Date, Subject, From and To, and the body, without dot-stuffing. Fields that relays add,
// such as Received, change nothing. A message without Message-ID, or with an empty one, is known by all
// its fields but Received: two reports of the same text in two different subjects
// are two messages. Knowing sender and recipients is of no use to a stranger, who
// would have to send the very same message to have it taken for delivered.
//
// # Which recipients go together
//
// The client names the recipients before it shows the message. [Group] decides at
// RCPT who can be in one transaction. For every message that all recipients of the
// transaction have in common, all must be in the same state. Recipients that have
// no message in common go together: the client brings a message that is unknown
// here. So entries of one message, whoever made them, do not split another message
// to other recipients.
//
// Of a message's states the one that had the fewest turns goes first, Delivered
// before Pending before Refused. A recipient waits for another's turn once and is
// then admitted, since the others may never come ([Store.Turn]). So k groups need k
// retries of the client, and no group keeps another waiting for good. The client may
// never come back for a message: so a recipient waits once for each turn of a message,
// not for each mail, and what the client has not come for within a day keeps nobody
// apart or waiting. It still has a copy suppressed.
//
// # What is kept, and where
//
// The Store's file holds no addresses, only their hashes. A line is written and
// synced before the client hears that it has to come again, so an entry outlives
// kill -9 and a loss of power. Each line has its own checksum, and one that was cut
// short is passed over. Entries end with the final reply to the client, after 7
// days, or as the oldest of more than 50,000. The file is written anew when it
// holds twice as many lines as there are entries, and some.
//
// Two processes may use one file while the one takes over from the other: each
// reads what the other has written before it answers for a recipient. When the file
// cannot be written, or is not a regular file of this user's, the entries are kept
// in memory alone. Then a restart before the client's retry has the message
// delivered twice to those who have it; no mail is lost.
package partial
