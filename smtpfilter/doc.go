// Package smtpfilter is an SMTP server that judges senders and passes mail on to a next
// hop. It asks a verdict.Checker about every sender in the envelope and in the header
// section, and replies according to the verdict. It passes everything else on unchanged.
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
