// Package smtpfilter is an SMTP server that judges senders and passes mail on to a next
// hop. It takes a verdict.Judge from Settings.Checker for each message, asks it about every
// sender in the envelope and in the header section, and replies according to the verdict.
// Headers are judged only if Policy.HeaderFields is set. Everything else passes unchanged.
//
// The zero Settings have no limit on the size of a message, on connections or on recipient
// domains. A server that strangers can reach needs Policy.RecipientDomains, or a next hop
// that does not relay for it: see nexthop.SMTP.CheckRelay.
//
// Whatever the client and the next hop do:
//
//   - The client receives 250 for a message only after the next hop's 250, unless a
//     verdict discards it.
//   - A message that is refused, incomplete, too large or timed out is never completed
//     at the next hop.
//   - The next hop sees the sender that was judged.
//   - Nothing inside a message is executed as a command.
//   - The message arrives byte for byte, after the trace fields.
package smtpfilter
